//! Certificates, replayed and forged.

mod models;
mod replaying;
mod tampering;
