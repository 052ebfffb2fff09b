use std::fs;
use std::process;

use super::*;
use crate::savefile;

/// A folder of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ackclock-{name}-{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A capture of segments at these times, each with its time as sequence number.
    fn capture(&self, name: &str, times_ns: &[u32]) -> PathBuf {
        let mut file = savefile::header();
        for &time_ns in times_ns {
            file.extend(savefile::record_header(u64::from(time_ns), 54, 54));
            file.extend(frame(time_ns));
        }
        self.file(name, &file)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn frame(sequence: u32) -> [u8; 54] {
    let mut frame = [0; 54];
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[17] = 40;
    frame[23] = 6;
    frame[38..42].copy_from_slice(&sequence.to_be_bytes());
    frame[46] = 0x50;
    frame
}

fn sequences(capture: &mut Capture) -> Vec<(u32, u32)> {
    capture
        .map(|segment| (segment.sequence, segment.file))
        .collect()
}

#[test]
fn files_are_merged_in_the_order_of_time() {
    let folder = Folder::new("merged");
    let (one, other) = (
        folder.capture("one", &[1, 4, 5]),
        folder.capture("other", &[2, 3, 9]),
    );
    let mut capture = Capture::open(&[one, other]);
    assert_eq!(
        sequences(&mut capture),
        [(1, 0), (2, 1), (3, 1), (4, 0), (5, 0), (9, 1)]
    );
    assert_eq!(capture.files()[1].counts().segments, 3);
    assert!(capture.files()[1].reason().is_none());
}

#[test]
fn files_are_opened_when_they_are_due() {
    let folder = Folder::new("many");
    let paths: Vec<_> = (0..20_u32)
        .rev()
        .map(|number| folder.capture(&number.to_string(), &[number * 10, number * 10 + 15]))
        .collect();
    let mut capture = Capture::open(&paths);
    let actual = sequences(&mut capture);
    assert_eq!(actual.len(), 40);
    assert!(actual.is_sorted());
    assert!(capture
        .files()
        .iter()
        .all(|file| file.counts().packets == 2));
}

#[test]
fn a_file_keeps_its_order_where_time_goes_back() {
    let folder = Folder::new("back");
    let (one, other) = (
        folder.capture("one", &[1, 7, 5, 8]),
        folder.capture("other", &[6]),
    );
    let mut capture = Capture::open(&[one, other]);
    assert_eq!(
        sequences(&mut capture),
        [(1, 0), (6, 1), (7, 0), (5, 0), (8, 0)]
    );
    assert_eq!(capture.files()[0].counts().out_of_order_timestamps, 1);
}

#[test]
fn unreadable_files_are_reported_and_the_others_are_read() {
    let folder = Folder::new("refused");
    let good = folder.capture("good", &[1]);
    let cut = fs::read(folder.capture("cut", &[2, 3])).unwrap();
    let cut = folder.file("cut", &cut[..cut.len() - 1]);
    let text = folder.file("text", b"time,bytes\n");
    let mut strange = savefile::header();
    strange[20] = 127;
    strange.extend(savefile::record_header(0, 1, 1));
    strange.push(0);
    let strange = folder.file("strange", &strange);
    let mut capture = Capture::open(&[good, cut, text, strange]);
    assert_eq!(sequences(&mut capture), [(1, 0), (2, 1)]);
    let unreadable: Vec<_> = capture.files().iter().map(File::is_unreadable).collect();
    assert_eq!(unreadable, [false, false, true, true]);
    let reason = |number: usize| capture.files()[number].reason().unwrap().to_string();
    assert!(reason(1).starts_with("packet 2 breaks off"));
    assert!(reason(2).starts_with("found a file that begins with"));
    assert!(reason(3).starts_with(
        "found only packets of link type 127 (LINKTYPE_IEEE802_11_RADIOTAP, 802.11 with radiotap); expected Ethernet"
    ));
}

/// A cooked capture of packets: time, packet type, sequence number.
fn cooked(folder: &Folder, packets: &[(u64, u8, u32)]) -> Capture {
    let mut file = savefile::header();
    file[20] = 113;
    for &(time_ns, kind, sequence) in packets {
        file.extend(savefile::record_header(time_ns, 56, 56));
        file.extend([0, kind, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]);
        file.extend(&frame(sequence)[14..]);
    }
    Capture::open(&[folder.file("cooked", &file)])
}

#[test]
fn a_packet_captured_at_two_points_is_one_duplicate() {
    let folder = Folder::new("places");
    let (incoming, outgoing) = (0, 4);
    let packets = [
        (0, incoming, 1),
        (900, outgoing, 1),
        // Sent again at once, and seen twice again.
        (5000, incoming, 1),
        (5900, outgoing, 1),
        // Another one, whose copy comes late: from another host.
        (6000, incoming, 2),
        (9_000_000, outgoing, 2),
    ];
    let marked: Vec<_> = cooked(&folder, &packets)
        .map(|segment| segment.duplicate)
        .collect();
    assert_eq!(marked, [false, true, false, true, false, false]);
}
