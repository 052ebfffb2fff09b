use std::io::Write;

use flate2::write::GzEncoder;
use flate2::Compression;
use lzma_rust2::{XzOptions, XzWriter};
use ruzstd::encoding::{compress_to_vec, CompressionLevel};

use super::*;

/// Two megabytes that compress to half: xz gives nothing of the 64 kB in which it breaks off.
fn plain() -> Vec<u8> {
    (0..500_000_u32)
        .flat_map(|number| {
            let mixed = number.wrapping_mul(2_654_435_761);
            ((mixed ^ mixed >> 15).wrapping_mul(0x846c_a68b) >> 16).to_le_bytes()
        })
        .collect()
}

fn compressed() -> [(&'static str, Vec<u8>); 3] {
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(&plain()).unwrap();
    let mut xz = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).unwrap();
    xz.write_all(&plain()).unwrap();
    [
        ("gz", gz.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
        (
            "zst",
            compress_to_vec(plain().as_slice(), CompressionLevel::Fastest),
        ),
    ]
}

/// Read a stream to its end or failure; return its bytes and the error.
fn drained(bytes: Vec<u8>) -> (Vec<u8>, Option<String>) {
    let mut source = Source::new(Cursor::new(bytes)).unwrap();
    let mut actual = Vec::new();
    let reason = source
        .read_to_end(&mut actual)
        .err()
        .map(|error| error.to_string());
    (actual, reason)
}

#[test]
fn compression_is_identified_by_the_first_bytes() {
    for (kind, bytes) in compressed() {
        assert_eq!(
            Source::new(Cursor::new(bytes.clone()))
                .unwrap()
                .compression(),
            Some(kind)
        );
        assert_eq!(drained(bytes), (plain(), None), "{kind}");
    }
    assert_eq!(drained(plain()), (plain(), None));
    assert_eq!(drained(vec![0x1f]), (vec![0x1f], None));
}

#[test]
fn parts_one_after_the_other_are_one_stream() {
    for (kind, bytes) in compressed() {
        assert_eq!(
            drained(bytes.repeat(2)),
            (plain().repeat(2), None),
            "{kind}"
        );
    }
}

#[test]
fn a_truncated_stream_gives_its_complete_part() {
    for (kind, bytes) in compressed() {
        let (actual, reason) = drained(bytes[..bytes.len() / 2].to_vec());
        assert!(
            actual.len() > 400_000 && plain().starts_with(&actual),
            "{kind}: {}",
            actual.len()
        );
        assert!(reason
            .unwrap()
            .starts_with(&format!("the {kind} data is damaged or breaks off")));
    }
}

#[test]
fn folders_and_missing_files_are_rejected() {
    let error = |path: &str| Source::open(Path::new(path)).unwrap_err().to_string();
    assert!(error("/").starts_with("found a folder; expected a capture"));
    assert!(error("/no such file").starts_with("cannot be read: No such file"));
}
