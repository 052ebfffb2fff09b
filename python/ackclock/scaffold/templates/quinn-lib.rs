//! $title: the QUIC stack quinn-proto behind `ackclock.h`, with a congestion controller of your own.
//!
//! quinn-proto is a state machine that takes the time, datagrams and a seed as arguments. Two things are not its
//! arguments: `Instant`, which can be made only by reading the clock (once; quinn uses differences alone), and the
//! random numbers of its BBR, which come from the operating system, so that `congestion = "bbr"` is rejected.

mod controller;
mod crypto;

use std::ffi::{c_char, c_int, CStr};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bytes::{Bytes, BytesMut};
use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent,
    Dir, EcnCodepoint, Endpoint, EndpointConfig, Event, MtuDiscoveryConfig, ServerConfig,
    StreamEvent, StreamId, TimeSource, TransportConfig, VarInt,
};

use crypto::Null;

const CLIENT: u32 = 0;
const ESTABLISHED: u32 = 1;
const FINISHED: u32 = 2;
const CLOSED: u32 = 4;
const NEVER: u64 = u64::MAX;

/// `struct ackclock_config`.
#[repr(C)]
pub struct Config {
    role: u32,
    max_payload_bytes: u32,
    ecn: u32,
    reserved: u32,
    now_ns: u64,
    initial_window_bytes: u64,
    receive_window_bytes: u64,
    congestion: *const c_char,
    options: *const c_char,
}

/// `struct ackclock_statistics`.
#[repr(C)]
pub struct Statistics {
    cwnd_bytes: u64,
    ssthresh_bytes: u64,
    srtt_ns: u64,
    in_flight_bytes: u64,
    lost_packets: u64,
    recoveries: u64,
    timeouts: u64,
}

/// The instant of virtual time 0.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

fn instant(now_ns: u64) -> Instant {
    *ORIGIN + Duration::from_nanos(now_ns)
}

/// A date that does not change: only tokens have one, and none is sent.
struct NoDate;

impl TimeSource for NoDate {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Random numbers from the seed (SplitMix64: G. Steele, D. Lea, C. Flood: Fast splittable pseudorandom number
/// generators, OOPSLA 2014).
#[derive(Clone)]
struct Draws(u64);

impl Draws {
    fn bytes(&mut self) -> [u8; 8] {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).to_le_bytes()
    }
}

impl ConnectionIdGenerator for Draws {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.bytes())
    }
    fn cid_len(&self) -> usize {
        8
    }
    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// One end of one connection.
pub struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    peer: SocketAddr,
    /// A response of the endpoint to a datagram of no connection.
    response: Vec<u8>,
    stream: Option<StreamId>,
    status: u32,
    now_ns: u64,
}

impl End {
    /// An end in its initial state; none for a configuration that the stack does not support.
    fn open(config: &Config, seed: u64) -> Option<End> {
        let mut draws = Draws(seed);
        let mut endpoint = EndpointConfig::new(Arc::new(Null));
        let connection_ids = Draws(u64::from_le_bytes(draws.bytes()));
        endpoint.cid_generator(move || Box::new(connection_ids.clone()));
        endpoint
            .max_udp_payload_size(config.max_payload_bytes as u16)
            .ok()?;
        let stack_seed: Vec<u8> = (0..4).flat_map(|_| draws.bytes()).collect();
        endpoint.rng_seed(stack_seed.try_into().ok());
        let (endpoint, transport) = (Arc::new(endpoint), Arc::new(transport(config)?));
        let is_client = config.role == CLIENT;
        let peer = SocketAddr::from(([10, 0, 0, 1 + u8::from(is_client)], 4433));
        let (endpoint, connection) = if is_client {
            let mut client = ClientConfig::new(Arc::new(Null));
            let draws = Mutex::new(draws);
            client.initial_dst_cid_provider(Arc::new(move || {
                ConnectionId::new(&draws.lock().unwrap().bytes())
            }));
            client.transport_config(transport);
            let mut endpoint = Endpoint::new(endpoint, None, true, None);
            let connection = endpoint
                .connect(instant(config.now_ns), client, peer, "example.org")
                .ok()?;
            (endpoint, Some(connection))
        } else {
            let mut server = ServerConfig::new(Arc::new(Null), Arc::new(Null));
            server
                .transport_config(transport)
                .time_source(Arc::new(NoDate));
            (
                Endpoint::new(endpoint, Some(Arc::new(server)), true, None),
                None,
            )
        };
        let (response, now_ns) = (Vec::new(), config.now_ns);
        Some(End {
            endpoint,
            connection,
            peer,
            response,
            stream: None,
            status: 0,
            now_ns,
        })
    }

    fn receive(&mut self, bytes: &[u8], ecn: u8) {
        let (now, ecn) = (instant(self.now_ns), EcnCodepoint::from_bits(ecn));
        self.response.clear();
        match self.endpoint.handle(
            now,
            self.peer,
            None,
            ecn,
            BytesMut::from(bytes),
            &mut self.response,
        ) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                self.connection = self
                    .endpoint
                    .accept(incoming, now, &mut self.response, None)
                    .ok();
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) | None => {}
        }
        self.handle_events();
    }

    /// Run the timers that are due, and pass events between connection, endpoint and application.
    fn handle_events(&mut self) {
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        let now = instant(self.now_ns);
        if connection.poll_timeout().is_some_and(|due| due <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    self.status |= ESTABLISHED;
                    if connection.side().is_client() {
                        self.stream = connection.streams().open(Dir::Uni);
                    }
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    self.stream = connection.streams().accept(dir)
                }
                Event::Stream(StreamEvent::Finished { .. }) => self.status |= FINISHED,
                Event::ConnectionLost { .. } => self.status |= CLOSED,
                _ => {}
            }
        }
    }

    fn poll(&mut self, into: &mut [u8]) -> (usize, u8) {
        self.handle_events();
        let mut bytes = std::mem::take(&mut self.response);
        let mut ecn = None;
        if let (true, Some((_, connection))) = (bytes.is_empty(), &mut self.connection) {
            ecn = connection
                .poll_transmit(instant(self.now_ns), 1, &mut bytes)
                .and_then(|sent| sent.ecn);
        }
        let length = bytes.len();
        if let Some(into) = into.get_mut(..length) {
            into.copy_from_slice(&bytes);
        }
        (length, ecn.map_or(0, |ecn| ecn as u8))
    }

    fn next_timeout(&mut self) -> u64 {
        let due = self
            .connection
            .as_mut()
            .and_then(|(_, connection)| connection.poll_timeout());
        due.map_or(NEVER, |due| {
            (due.saturating_duration_since(*ORIGIN).as_nanos() as u64).max(self.now_ns + 1)
        })
    }

    fn write(&mut self, bytes: &[u8], is_end: bool) -> usize {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else {
            return 0;
        };
        let taken = connection.send_stream(stream).write(bytes).unwrap_or(0);
        if is_end && taken == bytes.len() {
            let _ = connection.send_stream(stream).finish(); // fails only if the stream is over
        }
        taken
    }

    fn read(&mut self, into: &mut [u8]) -> usize {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else {
            return 0;
        };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else {
            return 0;
        };
        let mut read = 0;
        while read < into.len() {
            let Ok(Some(chunk)) = chunks.next(into.len() - read) else {
                break;
            };
            into[read..read + chunk.bytes.len()].copy_from_slice(&chunk.bytes);
            read += chunk.bytes.len();
        }
        let _ = chunks.finalize(); // credit for the sender goes out with the next poll
        read
    }

    fn fill(&self, statistics: &mut Statistics) {
        let Some((_, connection)) = &self.connection else {
            return;
        };
        let (controller, path) = (connection.congestion_state(), connection.stats().path);
        statistics.cwnd_bytes = controller.window();
        if let Some(ssthresh) = controller.metrics().ssthresh {
            statistics.ssthresh_bytes = ssthresh;
        }
        statistics.srtt_ns = connection.rtt().as_nanos() as u64;
        statistics.lost_packets = path.lost_packets;
        // quinn counts calls of `on_congestion_event`, which are not recovery periods.
    }
}

fn transport(config: &Config) -> Option<TransportConfig> {
    let mut transport = TransportConfig::default();
    let window = config.initial_window_bytes;
    // Safety: both are texts that end with a zero, as `ackclock.h` says.
    let (congestion, options) = unsafe {
        (
            CStr::from_ptr(config.congestion),
            CStr::from_ptr(config.options),
        )
    };
    let options = options.to_str().ok()?;
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match congestion.to_str().ok()? {
        "" => Arc::new(controller::Config::new(window, options)?),
        _ if !options.is_empty() => return None,
        "cubic" => Arc::new(CubicConfig::default().initial_window(window).clone()),
        "reno" => Arc::new(NewRenoConfig::default().initial_window(window).clone()),
        _ => return None,
    };
    transport.congestion_controller_factory(factory);
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(config.max_payload_bytes as u16);
    transport.mtu_discovery_config(Some(discovery));
    let receive = VarInt::from_u64(config.receive_window_bytes).ok()?;
    transport
        .stream_receive_window(receive)
        .send_window(config.receive_window_bytes);
    Some(transport)
}

// ---- the functions of ackclock.h. Their arguments are as it says: endpoints of `ackclock_new`, buffers of their length.

/// Version of the interface.
#[no_mangle]
pub extern "C" fn ackclock_version() -> u32 {
    1
}

#[no_mangle]
pub unsafe extern "C" fn ackclock_new(config: &Config, seed: u64) -> Option<Box<End>> {
    End::open(config, seed).map(Box::new)
}

#[no_mangle]
pub extern "C" fn ackclock_free(_end: Box<End>) {}

#[no_mangle]
pub unsafe extern "C" fn ackclock_receive(
    end: &mut End,
    now_ns: u64,
    bytes: *const u8,
    length: usize,
    ecn: u8,
) {
    end.now_ns = now_ns;
    end.receive(std::slice::from_raw_parts(bytes, length), ecn);
}

#[no_mangle]
pub unsafe extern "C" fn ackclock_poll(
    end: &mut End,
    now_ns: u64,
    buffer: *mut u8,
    capacity: usize,
    ecn: &mut u8,
) -> usize {
    end.now_ns = now_ns;
    let (length, codepoint) = end.poll(std::slice::from_raw_parts_mut(buffer, capacity));
    *ecn = codepoint;
    length
}

#[no_mangle]
pub extern "C" fn ackclock_next_timeout(end: &mut End) -> u64 {
    end.next_timeout()
}

#[no_mangle]
pub unsafe extern "C" fn ackclock_write(
    end: &mut End,
    now_ns: u64,
    bytes: *const u8,
    length: usize,
    is_end: c_int,
) -> usize {
    end.now_ns = now_ns;
    end.write(std::slice::from_raw_parts(bytes, length), is_end != 0)
}

#[no_mangle]
pub unsafe extern "C" fn ackclock_read(
    end: &mut End,
    now_ns: u64,
    buffer: *mut u8,
    capacity: usize,
) -> usize {
    end.now_ns = now_ns;
    end.read(std::slice::from_raw_parts_mut(buffer, capacity))
}

#[no_mangle]
pub extern "C" fn ackclock_status(end: &End) -> u32 {
    end.status
}

#[no_mangle]
pub extern "C" fn ackclock_close(end: &mut End, now_ns: u64) {
    end.now_ns = now_ns;
    if let Some((_, connection)) = &mut end.connection {
        connection.close(instant(now_ns), VarInt::from_u32(0), Bytes::new());
    }
}

#[no_mangle]
pub extern "C" fn ackclock_stats(end: &End, statistics: &mut Statistics) {
    end.fill(statistics);
}
