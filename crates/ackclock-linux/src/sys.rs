//! The calls of the kernel that no library wraps safely: socket options by number, `TCP_INFO`, reading without copying,
//! packet sockets in shared memory, a signal that is counted, the processor's counter.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

pub mod ring;

/// Room for `tcp_info` of kernels to come.
const INFO_BYTES: usize = 512;

/// Set an integer option of a socket.
pub fn set_option(socket: BorrowedFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the kernel reads four bytes from `value`, which outlives the call.
    let code = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    outcome(code as isize).map(drop)
}

/// The bytes of the kernel's `struct tcp_info`, as many as it has.
pub fn tcp_info(socket: BorrowedFd) -> io::Result<([u8; INFO_BYTES], usize)> {
    let mut info = [0; INFO_BYTES];
    let mut length = INFO_BYTES as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`, which has as many.
    let code = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    outcome(code as isize).map(|_| (info, length as usize))
}

/// Take at most so many bytes out of a TCP socket and discard them; return how many there were, 0 at the end of the
/// data.
pub fn discard(socket: BorrowedFd, most: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC a TCP socket counts the data and writes nothing (tcp(7)).
    outcome(unsafe {
        libc::recv(
            socket.as_raw_fd(),
            std::ptr::null_mut(),
            most,
            libc::MSG_TRUNC | libc::MSG_DONTWAIT,
        )
    })
}

/// A duplicate of a file descriptor of this process.
///
/// # Errors
/// It is not open.
pub fn duplicate(descriptor: i32) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the descriptor is not kept; the kernel refuses one that is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    borrowed.try_clone_to_owned()
}

/// Have the kernel wake this thread without timer slack.
pub fn wake_exactly() -> io::Result<()> {
    // SAFETY: the call takes a number and touches no memory.
    outcome(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) } as isize).map(drop)
}

/// Loads a module of the kernel from its file, with parameters as `insmod` takes them.
pub fn load_module(file: BorrowedFd, parameters: &str) -> io::Result<()> {
    let parameters = CString::new(parameters)?;
    // SAFETY: the kernel reads the string, which ends in a zero and outlives the call.
    let code = unsafe {
        libc::syscall(
            libc::SYS_finit_module,
            file.as_raw_fd(),
            parameters.as_ptr(),
            0,
        )
    };
    outcome(code as isize).map(drop)
}

/// The number of SIGCONT signals since counting began.
static CONTINUED: AtomicU32 = AtomicU32::new(0);

extern "C" fn continued(_signal: libc::c_int) {
    CONTINUED.fetch_add(1, Ordering::Relaxed);
}

/// Count each SIGCONT that comes from now on; call that one interrupts go on.
pub fn count_continuations() -> io::Result<()> {
    // SAFETY: an action of zeros is an empty mask and no flags; the handler adds to an atomic number and does nothing
    // else.
    let code = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = continued as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGCONT, &raw const action, std::ptr::null_mut())
    };
    outcome(code as isize).map(drop)
}

/// Return the number of SIGCONT signals.
pub fn continuations() -> u32 {
    CONTINUED.load(Ordering::Relaxed)
}

/// The processor's time stamp counter; 0 where there is none.
pub fn time_stamp_counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: each processor of this architecture has the instruction, and it touches no memory.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    0
}

fn outcome(code: isize) -> io::Result<usize> {
    usize::try_from(code).map_err(|_| io::Error::last_os_error())
}
