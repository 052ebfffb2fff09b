//! The calls of the kernel that no library wraps safely.
#![allow(unsafe_code)]

use std::io;

/// Return the calling thread a network of its own, which ends with the thread and its children.
pub fn own_network() -> io::Result<()> {
    // SAFETY: the call takes a number; of the thread it changes the network alone, which shares no memory.
    let code = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
