"""What the demo assistant says, in Markdown."""

GREETING = """\
Hello! I am Sederunt's **demo assistant**: I run without a network and without a model, so I only \
know a few things. Everything around me is real, though: what you see streaming is already in \
the log of this session.

Try one of these:

- *What is Sederunt?*
- *Show me a table and some code*
- *What is 17 × 23?*
- *How do I connect a real model?*"""

HELP = """\
I am the **demo assistant**, a small program and not a language model. I can

- explain Sederunt: sessions, turns, the queue, what happens when a worker dies, API keys;
- sum up this conversation (*summarise*), or list *what did I say*;
- calculate (*12.5 * 8*), count (*count to 30*), and repeat (*say good morning*);
- show how answers look: *a table*, *code*, *a list*, *a quotation*, *a long answer*.

For real work, connect a real model: ask me *how do I connect a real model?*"""

THANKS = "You are welcome. Ask *help* to see what this demo can do."

CONNECT = """\
I am only a demo. To work with a real model:

1. An owner or admin of your organization opens *Manage …* in the account menu, then \
**Providers and models**, and connects a server that speaks OpenAI's API: its base URL (for \
example `https://api.openai.com/v1`, or that of a server of your own such as vLLM or Ollama) and \
its API key, which is stored encrypted.
2. They add the **models** it serves by their ids, make one the default, and press \
*Test connection*.
3. New sessions use the default. A session that has already begun keeps its model until a request \
names another: `"model": "<provider>/<model>"`, on the session or on one prompt.

That turn then goes to the new model, with this conversation as its context."""

FALLBACK = """\
You wrote: “{quote}”

I am the **demo assistant**, a small program without a language model behind it, so I have no \
answer to that. Ask *help* for what I can do, or *how do I connect a real model?* to get one that \
can answer you."""

LONG = """\
### How a prompt becomes an answer

You press *Send*. In one transaction the server writes your message to the log of the session and \
puts a new **turn** in its queue. From this moment your prompt cannot be lost: you may close the \
tab, and it will be answered all the same.

A worker that has a place free **claims** the turn. It holds a lease on it, a few seconds long, \
and prolongs it for as long as it lives. If the worker dies, the lease runs out, and another \
worker takes the same turn as a new attempt.

Before each request to the model there is a **checkpoint**: which model, which effort, which \
tools. What the model writes is put into the log many times a second, and only what is in the log \
is shown. That is why a reload in the middle of an answer shows exactly what you had before.

When the model asks for a **tool**, the call is written down before it runs, and its result after. \
If the worker dies in between, a tool that is safe to repeat runs again; for any other the model \
is told that the outcome is unknown, and that it should look before it repeats anything.

When the model answers without asking for a tool, the turn is **complete**. The next one in the \
queue begins, and if there is none, the session is idle and waits for you.

That is all this long answer has to say: it was written by the people who built Sederunt, and the \
demo assistant has merely recited it."""

_TABLE = """\
| word | means |
|---|---|
| session | one durable conversation |
| turn | one prompt's work |
| attempt | one run of that work by a worker |
| step | one model request with its tool calls |"""

_CODE = """\
```python
def greet(name: str) -> str:
    \"\"\"A greeting, once.\"\"\"
    return f"Good morning, {name}!"


print(greet("Ada"))
```"""

_LIST = """\
1. A prompt is accepted.
2. A worker claims the turn.
   - It asks the model.
   - It runs the tools.
3. The answer is in the log."""

_QUOTATION = """\
> A session survives the tab, the network, the worker and the server."""

SAMPLES = (
    (("table", "tables", "markdown", "formatting"), _TABLE),
    (("code", "python", "snippet", "function", "markdown", "formatting"), _CODE),
    (("list", "bullet", "bullets", "markdown", "formatting"), _LIST),
    (("quote", "quotation", "markdown", "formatting"), _QUOTATION),
)

_API = """\
Products talk to Sederunt over `/v1` with an **API key** (`Authorization: Bearer sed_w_…`). `POST \
/v1/sessions` makes a session, `POST /v1/sessions/{id}/events` sends a prompt, and `GET \
/v1/sessions/{id}/events/stream` is the answer as it is written. The API documentation is at \
**/docs**."""

_LOST = """\
Try it: ask for *a long answer* and kill the worker process while it streams. Its lease runs out, \
another worker takes **the same turn** as a new attempt, and goes on from the last checkpoint. \
The text that was cut off stays in the log, folded away. Finished tool calls are never repeated."""

_STOP = """\
**Stop** ends the running turn from any tab or device. What was written stays, and the queue goes \
on."""

_QUEUE = """\
A prompt that you send while another is being answered **waits in the queue** of the session and \
is answered next. Each prompt is a turn of its own."""

_ARCHIVE = """\
**Archive** takes a session out of the list and destroys nothing. For eight seconds the notice at \
the bottom offers *Undo*; later you find it among the archived sessions."""

_WORDS = """\
A **turn** is the work for one prompt, an **attempt** one run of that work by a worker, a \
**step** one request to the model with the tools it asks for. A **checkpoint** stands before each \
step."""

_ABOUT = """\
**Sederunt** is a server for durable AI-agent sessions. People use it in a browser, products with \
API keys. A session is a log of events that only grows; whatever you see here is in that log, so \
a session survives the tab, the network, the worker and the server.

Ask me about *turns*, *the queue*, *what happens when a worker dies*, or *API keys*."""

TOPICS = (
    (("api", "keys?", "sdk", "curl", "client"), _API),
    (
        ("crash", "crashes", "dies", "die", "killed?", "restart", "durable", "lost", "recover"),
        _LOST,
    ),
    (("stop", "interrupt", "cancel"), _STOP),
    (("queue", "queued", "waiting"), _QUEUE),
    (("archive", "archived", "delete"), _ARCHIVE),
    (("turns?", "attempts?", "steps?", "checkpoints?"), _WORDS + "\n\n" + _TABLE),
    (("sederunt", "sessions?", "this place", "this app"), _ABOUT),
)
