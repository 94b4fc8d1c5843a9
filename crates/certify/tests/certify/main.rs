//! Certificates, replayed and forged.

mod effects;
mod facts;
mod models;
mod replaying;
mod signatures;
mod tampering;
