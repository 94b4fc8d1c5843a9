//! Certificates, replayed and forged.

mod models;
mod replaying;
mod signatures;
mod tampering;
