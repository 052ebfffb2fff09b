//! Stub
use crate::packet::Packet;
use crate::receiver::Blocks;
use crate::workload::Workload;
use ackclock_units::Time;
/// c
pub struct Capture;
impl Capture {
    /// n
    pub fn new() -> Capture {
        Capture
    }
    /// t
    pub fn take(&mut self) -> Vec<u8> {
        vec![]
    }
    /// r
    pub fn record_packet(&mut self, _p: &Packet, _b: Option<&Blocks>, _w: &Workload, _n: Time) {}
}
