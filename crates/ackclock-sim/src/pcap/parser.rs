//! Reads captures back, byte by byte and without the code that writes them.

/// Fields of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    pub nanoseconds: u64,
    pub wire_bytes: usize,
    pub tos: u8,
    pub identification: u16,
    pub time_to_live: u8,
    pub source: String,
    pub destination: String,
    pub flags: u16,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub window: u16,
    pub payload_bytes: usize,
    pub mss: Option<u16>,
    pub sack_permitted: bool,
    pub window_shift: Option<u8>,
    pub timestamps: Option<(u32, u32)>,
    pub sack: Vec<(u32, u32)>,
    pub option_bytes: usize,
}

fn le(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | usize::from(*byte))
}

fn be(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |value, byte| value << 8 | u32::from(*byte))
}

/// True if 16-bit words add up to all ones, with the carries added in at the end.
fn adds_up(bytes: &[u8]) -> bool {
    let total: u32 = bytes.chunks(2).map(be).sum();
    (total >> 16) + (total & 0xffff) == 0xffff
}

fn address(bytes: &[u8], port: &[u8]) -> String {
    format!(
        "{}.{}.{}.{}:{}",
        bytes[0],
        bytes[1],
        bytes[2],
        bytes[3],
        be(port)
    )
}

/// The TCP frames of a capture file that begins with its header.
pub fn frames(file: &[u8]) -> Vec<Frame> {
    records(after_header(file))
}

/// The UDP frames of such a file.
pub fn datagrams(file: &[u8]) -> Vec<Frame> {
    read(after_header(file), datagram)
}

/// The TCP frames of records without a file header.
pub fn records(bytes: &[u8]) -> Vec<Frame> {
    read(bytes, segment)
}

fn after_header(file: &[u8]) -> &[u8] {
    assert_eq!(le(&file[..4]), 0xa1b2_3c4d);
    assert_eq!(file[4..8], [2, 0, 4, 0]);
    assert_eq!(le(&file[16..20]), 128);
    assert_eq!(le(&file[20..24]), 1);
    &file[24..]
}

fn read(mut bytes: &[u8], frame: fn(&[u8], usize) -> Frame) -> Vec<Frame> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (kept, length) = (le(&bytes[8..12]), le(&bytes[12..16]));
        assert_eq!(kept, length.min(128), "snap length");
        let nanoseconds = (le(&bytes[..4]) * 1_000_000_000 + le(&bytes[4..8])) as u64;
        frames.push(Frame {
            nanoseconds,
            ..frame(&bytes[16..16 + kept], length)
        });
        bytes = &bytes[16 + kept..];
    }
    frames
}

/// Checked header of an IP packet's payload protocol, and the frame with the fields of IP and the ports.
fn carried(bytes: &[u8], frame_bytes: usize, protocol: u8, header_bytes: usize) -> (&[u8], Frame) {
    assert_eq!(bytes[12..14], [8, 0], "IPv4");
    let ip = &bytes[14..34];
    assert_eq!(ip[0], 0x45);
    assert_eq!(ip[9], protocol);
    assert_eq!(be(&ip[2..4]) as usize, frame_bytes - 14);
    assert!(adds_up(ip), "IP checksum");
    let (header, payload) = bytes[34..].split_at(header_bytes);
    let length = frame_bytes - 34;
    let mut covered = ip[12..20].to_vec();
    covered.extend([0, protocol, (length >> 8) as u8, length as u8]);
    covered.extend(header);
    assert!(adds_up(&covered), "checksum over zero payload");
    assert!(payload.iter().all(|byte| *byte == 0), "payload");
    let frame = Frame {
        wire_bytes: frame_bytes,
        tos: ip[1],
        identification: be(&ip[4..6]) as u16,
        time_to_live: ip[8],
        source: address(&ip[12..16], &header[..2]),
        destination: address(&ip[16..20], &header[2..4]),
        payload_bytes: length - header_bytes,
        ..Frame::default()
    };
    (header, frame)
}

fn datagram(bytes: &[u8], frame_bytes: usize) -> Frame {
    let (udp, frame) = carried(bytes, frame_bytes, 17, 8);
    assert_eq!(be(&udp[4..6]) as usize, frame_bytes - 34, "UDP length");
    assert_ne!(be(&udp[6..]), 0, "0 is no checksum");
    frame
}

fn segment(bytes: &[u8], frame_bytes: usize) -> Frame {
    let header_bytes = usize::from(bytes[46] >> 4) * 4;
    let (tcp, frame) = carried(bytes, frame_bytes, 6, header_bytes);
    with_options(
        Frame {
            sequence: be(&tcp[4..8]),
            acknowledgement: be(&tcp[8..12]),
            flags: u16::from_be_bytes([tcp[12] & 0x0f, tcp[13]]),
            window: be(&tcp[14..16]) as u16,
            option_bytes: header_bytes - 20,
            ..frame
        },
        &tcp[20..],
    )
}

fn edges(bytes: &[u8]) -> (u32, u32) {
    (be(&bytes[..4]), be(&bytes[4..8]))
}

fn with_options(mut frame: Frame, mut options: &[u8]) -> Frame {
    while let [kind, rest @ ..] = options {
        if *kind == 1 {
            options = rest;
            continue;
        }
        let (value, after) = rest[1..].split_at(usize::from(rest[0]) - 2);
        match kind {
            2 => frame.mss = Some(be(value) as u16),
            3 => frame.window_shift = Some(value[0]),
            4 => frame.sack_permitted = true,
            5 => frame.sack = value.chunks(8).map(edges).collect(),
            8 => frame.timestamps = Some(edges(value)),
            _ => panic!("unexpected option {kind}"),
        }
        options = after;
    }
    frame
}
