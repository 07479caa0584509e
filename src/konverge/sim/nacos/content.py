"""The routes for what declares content: namespaces, whole configurations, their history.

Paths and shapes are those of real servers: 2.x calls the namespace `public` by an empty id, answers a missing
configuration with an empty body, and a namespace that exists already with `false`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.sim.databases import Content
from konverge.sim.nacos import bodies
from konverge.sim.nacos.configs import PUBLIC, Configs, digest, key_of
from konverge.sim.nacos.disk import ConfigKey, Data

Answer = tuple[int, Any]
"""HTTP status and body; None is an empty one."""
Form = dict[str, str]
UNAVAILABLE: Answer = (500, "caused: UNAVAILABLE: io exception;")


class ContentRoutes:
    """Of one server."""

    def __init__(self, configs: Configs, *, third: bool) -> None:
        self._configs = configs
        self._third = third

    def routes(self) -> dict[str, Callable[[Form], Answer]]:
        if self._third:
            space, history = "/nacos/v3/admin/core/namespace", "/nacos/v3/admin/cs/history"
            lists = {f"GET {space}/list": self._namespaces, f"GET {history}/list": self._versions}
            lists["GET /nacos/v3/admin/cs/config/list"] = self.page
            details: dict[str, Callable[[Form], Answer]] = {f"GET {history}": self._version}
        else:
            space, history = "/nacos/v1/console/namespaces", "/nacos/v1/cs/history"
            lists = {f"GET {space}": self._namespaces}
            details = {f"GET {history}": self._history}
        writes = {
            f"POST {space}": self._create_namespace,
            f"PUT {space}": self._update_namespace,
            f"DELETE {space}": self._delete_namespace,
        }
        return lists | details | writes

    def _result(self, data: Any) -> Any:
        """In the envelope of the line."""
        return bodies.result(data) if self._third else data

    # -------------------------------------------------------------- namespaces

    def _namespaces(self, form: Form) -> Answer:
        public = PUBLIC if self._third else ""
        shown = [self._namespace(public, PUBLIC, "Default Namespace" if self._third else None, 0)]
        kept = self._configs.kept.namespaces
        shown += [self._namespace(space, title, text, 2) for space, (title, text) in kept.items()]
        return 200, bodies.result(shown) if self._third else bodies.result(shown, code=200, message=None)

    def _namespace(self, space: str, title: str, description: str | None, type: int) -> dict[str, Any]:
        count = self._configs.count(space or PUBLIC)
        texts = {"namespace": space, "namespaceShowName": title, "namespaceDesc": description}
        return {**texts, "quota": 200, "configCount": count, "type": type}

    def _create_namespace(self, form: Form) -> Answer:
        space = form.get("namespaceId" if self._third else "customNamespaceId", "")
        if space in self._configs.kept.namespaces or space == PUBLIC:
            return 200, self._result(False)
        return self._set_namespace(space, form.get("namespaceName", ""), form)

    def _update_namespace(self, form: Form) -> Answer:
        names = ("namespaceId", "namespaceName") if self._third else ("namespace", "namespaceShowName")
        space, title = (form.get(name, "") for name in names)
        if space not in self._configs.kept.namespaces:
            return 200, self._result(False)
        return self._set_namespace(space, title, form)

    def _set_namespace(self, space: str, title: str, form: Form) -> Answer:
        texts = (title, form.get("namespaceDesc", ""))

        def change(data: Data | Content) -> None:
            data.kept.namespaces[space] = texts

        return (200, self._result(True)) if self._configs.change(change) else UNAVAILABLE

    def _delete_namespace(self, form: Form) -> Answer:
        def change(data: Data | Content) -> None:
            data.kept.namespaces.pop(form.get("namespaceId", ""), None)

        return (200, self._result(True)) if self._configs.change(change) else UNAVAILABLE

    # -------------------------------------------------------------- configurations

    def detail(self, form: Form) -> Answer:
        """`show=all` of 2.x: from the database, with everything."""
        key = key_of(form)
        content = self._configs.read(key)
        if content is None:
            return 200, None
        entry = {"dataId": key[2], "group": key[1], "tenant": _tenant(key), "content": content}
        return 200, entry | {"md5": digest(content), "type": self._configs.kept.types.get(key, "text")}

    def page(self, form: Form) -> Answer:
        """Configurations of a namespace, without a filter."""
        space, size = key_of(form)[0], int(form["pageSize"])
        keys = [key for key in self._configs.stored() if key[0] == space]
        first = (int(form["pageNo"]) - 1) * size
        items = [self._listed(key) for key in keys[first : first + size]]
        pages = -(-len(keys) // size)
        page = {"totalCount": len(keys), "pageNumber": int(form["pageNo"]), "pagesAvailable": pages}
        return 200, self._result({**page, "pageItems": items})

    def _listed(self, key: ConfigKey) -> dict[str, Any]:
        if self._third:
            return {"dataId": key[2], "groupName": key[1]}
        return {"dataId": key[2], "group": key[1], "content": self._configs.read(key)}

    def _history(self, form: Form) -> Answer:
        return self._version(form) if "nid" in form else self._versions(form)

    def _versions(self, form: Form) -> Answer:
        """The newest first, without their contents."""
        key = key_of(form)
        listed = [self._entry(n) for n, (of, _, _) in enumerate(self._configs.kept.history) if of == key]
        items = [entry | {"content": None, "md5": None} for entry in reversed(listed)]
        page = {"totalCount": len(items), "pageNumber": 1, "pagesAvailable": 1, "pageItems": items}
        return 200, self._result(page)

    def _version(self, form: Form) -> Answer:
        number = int(form["nid"]) - 1 if form.get("nid", "").isdecimal() else -1
        if not 0 <= number < len(self._configs.kept.history):
            missing = bodies.result(None, code=20004, message="resource not found")
            return (404, missing) if self._third else (200, None)
        return 200, self._result(self._entry(number))

    def _entry(self, number: int) -> dict[str, Any]:
        key, operation, content = self._configs.kept.history[number]
        entry = {"id": str(number + 1), "dataId": key[2], "content": content, "md5": digest(content)}
        if self._third:
            return entry | {"namespaceId": key[0], "groupName": key[1], "opType": operation}
        return entry | {"group": key[1], "tenant": _tenant(key), "opType": operation.ljust(10)}


def _tenant(key: ConfigKey) -> str:
    return "" if key[0] == PUBLIC else key[0]
