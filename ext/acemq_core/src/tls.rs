//! What a TLS dial verifies, and what it shows of itself.

use crate::error::{Error, Result};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a dial is secured.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Only certificates of this authority are trusted; without it, those of the system.
    pub ca_file: Option<PathBuf>,
    /// Our own certificate and its key, where the broker asks for one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name the certificate must carry, where it is not the host's.
    pub server_name: Option<String>,
    /// Accept whatever certificate the broker shows.
    pub unverified: bool,
}

impl Tls {
    /// # Errors
    /// [`Kind::Config`](crate::Kind::Config) naming the file that cannot be used and why.
    pub(crate) fn client_config(&self) -> Result<Arc<ClientConfig>> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::config(format!("TLS cannot be set up: {e}")))?;
        let builder = if self.unverified {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider)))
        } else {
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(self.roots()?), provider)
                .build()
                .map_err(|e| Error::config(format!("the certificate authority cannot be used: {e}")))?;
            builder.with_webpki_verifier(verifier)
        };
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                builder.with_client_auth_cert(certificates(certificate)?, private_key(key)?).map_err(|e| {
                    Error::config(format!(
                        "the client certificate {} and the key {} do not go together: {e}",
                        certificate.display(),
                        key.display()
                    ))
                })?
            }
        };
        Ok(Arc::new(config))
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        match &self.ca_file {
            Some(path) => {
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|e| unreadable("certificate authority", path, &e.to_string()))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    return Err(Error::config(
                        "this system has no trusted certificate authorities; install them (ca-certificates), set \
                         SSL_CERT_FILE, or name the broker's own with Security.verified(certificate_authority: path)",
                    ));
                }
            }
        }
        Ok(roots)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|e| unreadable("certificate file", path, &e.to_string()))?;
    if found.is_empty() {
        return Err(unreadable("certificate file", path, "it holds no PEM certificate"));
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|e| unreadable("key file", path, &format!("{e} (an encrypted key must be decrypted first)")))
}

fn unreadable(what: &str, path: &Path, why: &str) -> Error {
    Error::config(format!("the {what} {} cannot be used: {why}", path.display()))
}

/// Verifies nothing but that the peer holds the key of the certificate it shows.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
