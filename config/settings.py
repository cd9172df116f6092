"""Every setting, in one file: typed, safe by default, each with its unit and its reason."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from config import env, mail

BASE_DIR = Path(__file__).resolve().parent.parent

# What kind of place this is. Development switches on the demo provider's probes and plain HTTP.
SEDERUNT_ENV = env.choice("SEDERUNT_ENV", "production", {"production", "development", "test"})
IS_DEVELOPMENT = SEDERUNT_ENV in {"development", "test"}
# Database, files, keys and logs of this installation.
SEDERUNT_HOME = Path(env.text("SEDERUNT_HOME", str(BASE_DIR / ".sederunt"))).resolve()
DEBUG = env.flag("DEBUG", False)
if DEBUG and not IS_DEVELOPMENT:
    raise ImproperlyConfigured("DEBUG is for development: unset it, or set SEDERUNT_ENV.")


# ── Secrets ──
def _made_once(name: str) -> str:
    """A key that `make run` made for this home; empty where it never ran."""
    path = SEDERUNT_HOME / "keys" / name
    return path.read_text().strip() if path.is_file() else ""


if IS_DEVELOPMENT:
    SECRET_KEY = (
        env.text("SEDERUNT_SECRET_KEY")
        or _made_once("secret_key")
        or f"development-only-{SEDERUNT_HOME}"
    )
    _made = _made_once("encryption_key")
    _encryption = (
        env.words("SEDERUNT_ENCRYPTION_KEY")
        or ([_made] if _made else [])
        or [base64.urlsafe_b64encode(hashlib.sha256(SECRET_KEY.encode()).digest()).decode()]
    )
else:
    SECRET_KEY = env.required(
        "SEDERUNT_SECRET_KEY",
        "a long random text that signs cookies; keep it the same for ever.",
    )
    env.required(
        "SEDERUNT_ENCRYPTION_KEY",
        "a Fernet key (32 random bytes, URL-safe base64) that encrypts stored credentials.",
    )
    _encryption = env.words("SEDERUNT_ENCRYPTION_KEY")
    if len(SECRET_KEY) < 50:
        raise ImproperlyConfigured("SEDERUNT_SECRET_KEY must have at least 50 characters.")
# The first encrypts, all decrypt: put a new key in front to rotate.
ENCRYPTION_KEYS = _encryption

# ── Where we answer ──
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS") or (
    ["localhost", "127.0.0.1", "[::1]", "testserver"] if IS_DEVELOPMENT else []
)
if "*" in ALLOWED_HOSTS and not IS_DEVELOPMENT:
    raise ImproperlyConfigured(
        "ALLOWED_HOSTS must name the hosts: links in mail lead to the one that a request named."
    )
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")
# Plain HTTP is for development alone; behind a proxy, say that it speaks TLS for us.
_SECURE = not IS_DEVELOPMENT
if env.flag("BEHIND_TLS_PROXY"):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# Whose word we take for where a client came from. Anybody else's X-Forwarded-For says nothing.
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES", "127.0.0.1,::1")
SECURE_SSL_REDIRECT = _SECURE
# How long browsers insist on TLS after a visit; 0 takes it back.
SECURE_HSTS_SECONDS = env.number("HSTS_SECONDS", 31_536_000 if _SECURE else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = SECURE_HSTS_SECONDS > 0
# Health checks come from the inside, without TLS.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SESSION_ENGINE = "orgs.login_store"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _SECURE
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME = "sederunt_login"
CSRF_COOKIE_NAME = "csrftoken"
SESSION_COOKIE_AGE = 60 * 60 * 24 * 14  # seconds; two weeks
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

# ── Applications ──
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "channels",
    "csp",
    "django_filters",
    "django_htmx",
    "drf_spectacular",
    "rest_framework",
    "core",
    "orgs",
    "catalog",
    "sessions_app",
    "engine",
]
MIDDLEWARE = [
    "core.api.request_id.RequestIdMiddleware",
    "core.api.whence.WhenceMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "core.api.no_store.NoStoreMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
AUTH_USER_MODEL = "orgs.User"
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/sign-in/"
# Seconds that the link to a new password is good for.
PASSWORD_RESET_TIMEOUT = 3_600
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
if SEDERUNT_ENV == "test":  # argon2 is slow on purpose; a suite makes hundreds of people
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            # Icons, marks and times: named here, so that apps below may use them in templates.
            "libraries": {"web": "sessions_app.web.tags"},
        },
    },
]
LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# ── Static files ──
STATIC_URL = "/static/"
STATIC_ROOT = Path(env.text("STATIC_ROOT", str(SEDERUNT_HOME / "static")))
STATICFILES_DIRS = [BASE_DIR / "static"]
_STATIC_STORAGE = (
    "django.contrib.staticfiles.storage.StaticFilesStorage"
    if IS_DEVELOPMENT
    else "whitenoise.storage.CompressedManifestStaticFilesStorage"
)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": _STATIC_STORAGE},
}
WHITENOISE_USE_FINDERS = IS_DEVELOPMENT
# Edits show at once, and no test client has to list every file before its first request.
WHITENOISE_AUTOREFRESH = IS_DEVELOPMENT

# ── Content security ──
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "manifest-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    },
}


# ── Database ──
def _embedded_url() -> str:
    """The embedded PostgreSQL of this home, where one runs: so that `manage.py shell` attaches."""
    connection = SEDERUNT_HOME / "postgres" / "connection.json"
    if not connection.is_file():
        raise ImproperlyConfigured(
            "No database: set DATABASE_URL, or start the embedded PostgreSQL with `make run`."
        )
    return str(json.loads(connection.read_text())["url"])


def _database(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured("DATABASE_URL must begin with postgresql://.")
    options: dict[str, Any] = {
        # A pool per process: with ASGI, persistent connections per thread are never given back.
        "pool": {
            "min_size": 0,
            "max_size": DB_POOL_SIZE,
            "timeout": 5,  # then the request is refused as unavailable
            "max_idle": 60,
            # Its pauses grow for as long as it tries: so it gives up soon, and the next request
            # after an outage begins anew.
            "reconnect_timeout": 2,
        },
        "application_name": env.text("SEDERUNT_PROCESS", "sederunt"),
        # A standby may lag behind: nothing is read from it, or streams would see logs shrink.
        "target_session_attrs": "read-write",
        "connect_timeout": 5,
        # A server that vanished without a word is noticed within about ten seconds.
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
    }
    if "sslmode" in query:
        options["sslmode"] = query["sslmode"]
    return {
        "ENGINE": "core.postgres",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.get("host") or unquote(parts.hostname or ""),
        "PORT": str(parts.port or query.get("port") or ""),
        "CONN_MAX_AGE": 0,
        # After a restart of PostgreSQL the pool holds dead connections; ask before using one.
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options,
    }


# Connections and threads for synchronous database work, per process.
DB_POOL_SIZE = env.number("DB_POOL_SIZE", 20, minimum=2, maximum=500)
DB_THREADS = env.number("DB_THREADS", 12, minimum=2, maximum=200)
DATABASE_URL = env.text("DATABASE_URL") or _embedded_url()
# LISTEN needs a session of its own: not through a transaction-mode pooler.
DATABASE_DIRECT_URL = env.text("DATABASE_DIRECT_URL") or DATABASE_URL
DATABASES = {"default": _database(DATABASE_URL)}
# With a Redis here, hints travel over its pub/sub instead of NOTIFY.
REDIS_URL = env.text("REDIS_URL")

# ── Mail: invitations, links to a new password ──
# Without an address of a server, mail is written to the log: enough to try things out.
globals().update(mail.settings_of(env.text("EMAIL_URL")))
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.text("EMAIL_FROM", "Sederunt <sederunt@localhost>")

# ── Workers ──
LEASE_SECONDS = env.number("LEASE_SECONDS", 10, minimum=2)  # an attempt not prolonged is lost
HEARTBEAT_SECONDS = env.number("HEARTBEAT_SECONDS", 3, minimum=1)
POLL_SECONDS = env.number("POLL_SECONDS", 1, minimum=1)  # what a lost hint costs at most
WORKER_CONCURRENCY = env.number("WORKER_CONCURRENCY", 32, minimum=1)  # turns at once per process
HANDOVER_GRACE_SECONDS = env.number("HANDOVER_GRACE_SECONDS", 10)  # for calls already started
MAX_LOSSES = env.number("MAX_LOSSES", 3, minimum=1)  # in a row, then the turn fails
JOURNAL_FLUSH_MS = env.number("JOURNAL_FLUSH_MS", 33, minimum=1)
JOURNAL_FLUSH_BYTES = env.number("JOURNAL_FLUSH_BYTES", 2_048, minimum=1)
PROVIDER_MAX_TRIES = env.number("PROVIDER_MAX_TRIES", 6, minimum=1)
# Owners write the addresses of providers: private ones, and plain HTTP, only where this names them.
PROVIDER_PRIVATE_HOSTS = env.places(
    "PROVIDER_PRIVATE_HOSTS", "127.0.0.0/8,::1" if IS_DEVELOPMENT else "none"
)

# ── Streams ──
STREAM_HEARTBEAT_SECONDS = env.number("STREAM_HEARTBEAT_SECONDS", 15, minimum=1)
ACCESS_CHECK_SECONDS = env.number("ACCESS_CHECK_SECONDS", 1, minimum=1)
# Who may read /metrics from elsewhere; empty: only the machine itself, without a proxy between.
METRICS_TOKEN = env.text("METRICS_TOKEN")

# ── Bounds: each is told in the error that it causes ──
PROMPT_MAX_CHARACTERS = env.number("PROMPT_MAX_CHARACTERS", 100_000, minimum=1)
FOLDERS_MAX = env.number("FOLDERS_MAX", 100, minimum=1)
BULK_UNDO_SECONDS = env.number("BULK_UNDO_SECONDS", 3_600, minimum=1)
TITLE_MAX_CHARACTERS = env.number("TITLE_MAX_CHARACTERS", 120, minimum=1)
ORIGIN_MAX_BYTES = env.number("ORIGIN_MAX_BYTES", 4_096, minimum=1)
METADATA_MAX_PAIRS = 16
METADATA_KEY_MAX_CHARACTERS = 64
METADATA_VALUE_MAX_CHARACTERS = 512
# What a call says of 100 child sessions, each with its bare outcome, has to fit.
TOOL_EVENT_MAX_BYTES = env.number("TOOL_EVENT_MAX_BYTES", 65_536, minimum=32_768)
PAGE_MAX_BYTES = env.number("PAGE_MAX_BYTES", 1_048_576, minimum=65_536)
CHILD_MAX_DEPTH = env.number("CHILD_MAX_DEPTH", 3, minimum=0)  # below a root session
CHILDREN_MAX_LIVE = env.number("CHILDREN_MAX_LIVE", 32, minimum=1)  # of one session, unfinished
CHILD_RESULT_MAX_CHARACTERS = env.number("CHILD_RESULT_MAX_CHARACTERS", 16_000, minimum=100)
TREE_MAX_SESSIONS = env.number("TREE_MAX_SESSIONS", 500, minimum=1)  # read below one at once
# Of one response of a model. Longer text is ended there; beyond the others it is refused whole.
RESPONSE_MAX_CHARACTERS = env.number("RESPONSE_MAX_CHARACTERS", 400_000, minimum=1_000)
RESPONSE_MAX_CALLS = env.number("RESPONSE_MAX_CALLS", 128, minimum=1)
RESPONSE_MAX_ARGUMENT_BYTES = env.number("RESPONSE_MAX_ARGUMENT_BYTES", 524_288, minimum=1_024)
QUEUE_MAX_TURNS = env.number("QUEUE_MAX_TURNS", 1_000, minimum=1)
DATA_UPLOAD_MAX_MEMORY_SIZE = env.number("BODY_MAX_BYTES", 2_097_152, minimum=65_536)
KEY_LIFETIME_DAYS = env.number("KEY_LIFETIME_DAYS", 90, minimum=1)
KEY_LIFETIME_MAX_DAYS = env.number("KEY_LIFETIME_MAX_DAYS", 365, minimum=1)
KEY_OVERLAP_MAX_SECONDS = env.number("KEY_OVERLAP_MAX_SECONDS", 7 * 86_400, minimum=0)
INVITATION_LIFETIME_DAYS = env.number("INVITATION_LIFETIME_DAYS", 7, minimum=1)
IDEMPOTENCY_HOURS = env.number("IDEMPOTENCY_HOURS", 24, minimum=1)

# ── Operators ──
OPERATORS_READ_CONTENT = env.flag("OPERATORS_READ_CONTENT", False)

# ── API ──
# Requests of one person or key, per minute and web process. It stops runaways, and is no quota.
RATE_LIMIT_PER_MINUTE = env.number("RATE_LIMIT_PER_MINUTE", 6_000, minimum=1)
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["orgs.api.authentication.AccessAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["core.api.json.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["core.api.json.ORJSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "core.api.errors.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Sederunt",
    "DESCRIPTION": "Durable AI-agent sessions.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,
    "SCHEMA_PATH_PREFIX": "/v1",
    "POSTPROCESSING_HOOKS": [
        "sessions_app.api.openapi.add_stream",
        "core.api.schema.add_error_responses",
    ],
}
# E-mail addresses are unique whatever the case of their letters: by a constraint over lower().
SILENCED_SYSTEM_CHECKS = ["auth.E003", "auth.W004"]

# ── Logs: names and ids, never people's text ──
_LOG_LEVEL = env.text("LOG_LEVEL", "INFO")
# At DEBUG these write down what goes over the line: keys, cookies, prompts.
_TALKATIVE = ("uvicorn", "websockets", "daphne", "httpcore", "openai")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "core.log_lines.LineFormatter",
            "fmt": "%(asctime)s %(levelname)s %(name)s %(message)s",
            "secret_paths": ["/invitation/", "/password-reset/"],
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": _LOG_LEVEL},
    # Whoever asks for another host gets a 400; its traceback would let them fill the log.
    "loggers": {
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        **{name: {"level": "INFO" if _LOG_LEVEL == "DEBUG" else _LOG_LEVEL} for name in _TALKATIVE},
        # The clients of providers name whole addresses, which may hold credentials.
        "httpx2": {"level": "WARNING"},
        "httpcore2": {"level": "WARNING"},
    },
}
