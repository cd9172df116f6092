"""Addresses of the app. Ids in them are public ones."""

from __future__ import annotations

from django.urls import path

from sessions_app.web import account, acts, control, deciding, forking, pages, relatives

urlpatterns = [
    path("", pages.home),
    path("w/<str:workspace>/", pages.workspace),
    path("w/<str:workspace>/new/", pages.workspace, {"screen": "new"}),
    path("w/<str:workspace>/begin", acts.begin),
    path("w/<str:workspace>/draft", acts.workspace_draft),
    path("w/<str:workspace>/sidebar/", pages.sidebar),
    path("w/<str:workspace>/archived/", pages.archived),
    path("w/<str:workspace>/group/<str:group>/", pages.group),
    path("account/", account.account),
    path("account/password", account.password),
    path("account/logins/others/end", account.sign_out_others),
    path("account/logins/all/end", account.sign_out_everywhere),
    path("account/logins/<str:login>/end", account.sign_out_one),
    path("inbox/", deciding.inbox),
    path("inbox/count", deciding.count),
    path("s/<str:session>/waits/<str:event>/confirm", deciding.confirm),
    path("s/<str:session>/waits/<str:event>/answer", deciding.answer),
    path("kin/", relatives.kin),
    path("s/<str:session>/", pages.session),
    path("s/<str:session>/events/<int:seq>/", pages.event_text),
    path("s/<str:session>/live", acts.live),
    path("s/<str:session>/send", acts.send),
    path("s/<str:session>/stop", acts.stop),
    path("s/<str:session>/pause", control.pause),
    path("s/<str:session>/resume", control.resume),
    path("s/<str:session>/retry", control.retry),
    path("s/<str:session>/cancel", control.cancel),
    path("s/<str:session>/fork", forking.fork),
    path("s/<str:session>/children/", relatives.children),
    path("s/<str:session>/tree/", relatives.tree),
    path("s/<str:session>/around/", relatives.around),
    path("s/<str:session>/queue/", control.queue),
    path("s/<str:session>/queue/<str:turn>/edit", control.edit),
    path("s/<str:session>/queue/<str:turn>/move", control.move),
    path("s/<str:session>/queue/<str:turn>/delete", control.delete),
    path("s/<str:session>/queue/<str:turn>/promote", control.promote),
    path("s/<str:session>/rename", acts.rename),
    path("s/<str:session>/pin", acts.pin),
    path("s/<str:session>/visibility", control.visibility),
    path("s/<str:session>/read", acts.read),
    path("s/<str:session>/archive", acts.archive),
    path("s/<str:session>/restore", acts.restore),
    path("s/<str:session>/draft", acts.session_draft),
]
