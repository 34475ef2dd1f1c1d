//! What a TLS dial verifies, and what it shows of itself.

use crate::error::{Error, Result};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where PEM text comes from.
#[derive(Clone)]
pub enum Pem {
    File(PathBuf),
    Text(String),
}

/// Without the text, which may be a key.
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl Pem {
    fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Text(_) => "given as text".into(),
        }
    }

    fn certificates(&self, what: &str) -> Result<Vec<CertificateDer<'static>>> {
        let found: std::result::Result<Vec<_>, _> = match self {
            Self::File(path) => CertificateDer::pem_file_iter(path).and_then(Iterator::collect),
            Self::Text(text) => CertificateDer::pem_slice_iter(text.as_bytes()).collect(),
        };
        match found {
            Ok(found) if !found.is_empty() => Ok(found),
            Ok(_) => Err(self.unusable(what, "it holds no PEM certificate")),
            Err(e) => Err(self.unusable(what, &e.to_string())),
        }
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>> {
        match self {
            Self::File(path) => PrivateKeyDer::from_pem_file(path),
            Self::Text(text) => PrivateKeyDer::from_pem_slice(text.as_bytes()),
        }
        .map_err(|e| self.unusable("client's key", &format!("{e} (an encrypted key must be decrypted first)")))
    }

    fn unusable(&self, what: &str, why: &str) -> Error {
        Error::config(format!("the {what} ({}) cannot be used: {why}", self.name()))
    }
}

/// How a dial is secured.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Only certificates of this authority are trusted; without it, those of the system.
    pub authority: Option<Pem>,
    /// Our own certificate and its key, where the broker asks for one.
    pub identity: Option<(Pem, Pem)>,
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
                let chain = certificate.certificates("client's certificate")?;
                builder
                    .with_client_auth_cert(chain, key.private_key()?)
                    .map_err(|e| Error::config(format!("the client's certificate and key do not go together: {e}")))?
            }
        };
        Ok(Arc::new(config))
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        match &self.authority {
            Some(pem) => {
                for certificate in pem.certificates("certificate authority")? {
                    roots.add(certificate).map_err(|e| pem.unusable("certificate authority", &e.to_string()))?;
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
