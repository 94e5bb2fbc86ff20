"""A certificate authority made on the spot, and what it signs, as PEM files."""

import datetime as dt
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PEM = serialization.Encoding.PEM


class Authority:
    """Signs certificates into ``directory``; ``ca_file`` is its own."""

    def __init__(self, directory, name="test CA"):
        self.directory = directory
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._builder(self.name, self.key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.certificate = certificate.sign(self.key, hashes.SHA256())
        self.ca_file = str(directory / f"{name}.pem")
        (directory / f"{name}.pem").write_bytes(self.certificate.public_bytes(_PEM))

    def _builder(self, name, key):
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
        )

    def sign(self, name):
        """(certificate file, key file) for a host name or an address."""
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            alternative = x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            alternative = x509.DNSName(name)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            self._builder(subject, key)
            .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        cert_file, key_file = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        cert_file.write_bytes(certificate.public_bytes(_PEM))
        key_file.write_bytes(
            key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        return str(cert_file), str(key_file)
