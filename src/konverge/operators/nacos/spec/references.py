"""References of a `Nacos` to Secrets and ConfigMaps of its namespace."""

from __future__ import annotations

from typing import Annotated

from konverge.objects import MinLength, Model, required


class CredentialsRef(Model):
    """A Secret with a user name and a password."""

    name: str = ""
    """The name of the Secret, in the namespace of the resource."""
    username_key: Annotated[str, MinLength(1)] = "username"
    """The key of the user name."""
    password_key: Annotated[str, MinLength(1)] = "password"  # noqa: S105 - the name of a key
    """The key of the password."""


class AdminRef(Model):
    """A Secret with the administrator: a bcrypt hash, or a plain password that the operator hashes."""

    name: str = ""
    """The name of the Secret, in the namespace of the resource."""
    username_key: Annotated[str, MinLength(1)] = "username"
    """The key of the administrator's name."""
    password_hash_key: Annotated[str, MinLength(1)] = "passwordHash"  # noqa: S105 - the name of a key
    """The key of the bcrypt hash, which counts more than a plain password."""
    password_key: Annotated[str, MinLength(1)] = "password"  # noqa: S105 - the name of a key
    """The key of the plain password."""


class IdentityRef(Model):
    """A Secret with the header by which servers know one another."""

    name: str = ""
    """The name of the Secret, in the namespace of the resource."""
    key_key: Annotated[str, MinLength(1)] = "identity_key"
    """The key of the header's name."""
    value_key: Annotated[str, MinLength(1)] = "identity_value"
    """The key of the header's value."""


class SecretKeyRef(Model):
    """One key of a Secret."""

    name: str = ""
    """The name of the Secret, in the namespace of the resource."""
    key: str = ""
    """The key in it."""


class CertificateRef(Model):
    """A Secret with a certificate, as cert-manager writes it: tls.crt, tls.key."""

    name: Annotated[str, MinLength(1)] = required(str)
    """The name of the Secret, in the namespace of the resource."""


class ConfigMapRef(Model):
    """One key of a ConfigMap."""

    name: str = ""
    """The name of the ConfigMap, in the namespace of the resource."""
    key: str = ""
    """The key in it."""
