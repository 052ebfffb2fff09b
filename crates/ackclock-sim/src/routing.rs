//! Routing of packets between two hosts of a graph.
//!
//! Each node knows the links that begin a shortest path ([`tables`]) and takes one of them: always the first
//! (`single`), the one that a hash of the flow names (`ecmp`: D. Thaler, C. Hopps, RFC 2991; C. Hopps, RFC 2992;
//! `weighted`), or one that it draws for each packet (`ecmp-packet`) or each flowlet (`flowlet`: `flowlets`).
//! With `valiant` a flow goes by way of a switch that is drawn for it (`valiant`).
//!
//! Every node's hash has a salt of its own, drawn from the seed. With one salt for all, flows that one switch
//! sends by one link would go on together at every further one, and a part of the links would never be used
//! (polarisation). The two paths of a flow are hashed apart.
//!
//! A hash names the same path for each packet, so where links do not fail, a flow's path is found once and kept.
//!
//! Deviations: RFC 2992 analyses a hash-threshold over regions of equal size; this is one, over 32 bits.

use ackclock_core::Time;
use ackclock_plan::{EndsPlan, Plan};
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

use crate::packet::Packet;
use crate::queue::hash::FlowHash;
use crate::PlanError;

mod flowlets;
pub mod graph;
pub mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod valiant;

use flowlets::Flowlets;
use graph::{Graph, NONE};
use tables::Tables;
use valiant::Valiant;

/// Links of a flow's two paths together that can be stored.
const KEPT_LINKS: usize = 12;

/// Next hop of a packet at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This link.
    Link(u32),
    /// It has arrived.
    Arrived,
    /// No path leads on.
    Unreachable,
    /// Its flow is not routed: it has explicit paths.
    NotRouted,
}

/// The two paths of a flow, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct FlowPaths {
    /// Forward links, then reverse links, if they are stored.
    links: [u32; KEPT_LINKS],
    /// The sender's node; [`NONE`] if the flow is not routed.
    source: u32,
    /// The receiver's node.
    destination: u32,
    /// Hash key of the forward path; one more for the reverse path.
    key: u32,
    /// Stored forward links; 0 if links are looked up at each node.
    forward: u8,
    /// Stored reverse links.
    reverse: u8,
}

impl FlowPaths {
    const NOT_ROUTED: FlowPaths = FlowPaths {
        links: [NONE; KEPT_LINKS],
        source: NONE,
        destination: NONE,
        key: 0,
        forward: 0,
        reverse: 0,
    };

    fn end(&self, forward: bool) -> u32 {
        if forward {
            self.destination
        } else {
            self.source
        }
    }

    fn key(&self, forward: bool) -> u32 {
        self.key + u32::from(!forward)
    }
}

/// Lookup of a packet's next link: its flow's slot, the time, and the destination.
#[derive(Clone, Copy, Debug)]
struct Lookup {
    slot: usize,
    now: Time,
    destination: u32,
    key: u32,
}

/// Routing state of all flows.
#[derive(Debug)]
pub struct Routing {
    mode: ackclock_plan::Routing,
    graph: Graph,
    names: Vec<String>,
    tables: Tables,
    /// Hash of each node.
    hashes: Vec<FlowHash>,
    /// Random numbers of each node, for per-packet choices.
    randoms: Vec<Pcg64Mcg>,
    /// State by the flow's slot.
    paths: Vec<FlowPaths>,
    /// True if a flow's path is fixed and can be stored.
    keeps_paths: bool,
    flowlets: Flowlets,
    /// Detours of the flows; `None` unless the mode is `valiant`.
    valiant: Option<Valiant>,
    spare: Vec<u32>,
}

impl Routing {
    /// Make the routing of a plan, without open flows.
    pub fn new(plan: &Plan, seed: u64) -> Routing {
        let mut random = Pcg64Mcg::new(u128::from(seed) << 64 | 0x726f_7574_696e_6701);
        random.next_u64();
        let hashes = plan.nodes.iter().map(|_| FlowHash::draw(&mut random));
        Routing::with_hashes(plan, hashes.collect(), &mut random)
    }

    fn with_hashes(plan: &Plan, hashes: Vec<FlowHash>, random: &mut Pcg64Mcg) -> Routing {
        let graph = Graph::new(plan);
        let mut stream = || Pcg64Mcg::new(u128::from(random.next_u64()) << 1 | 1);
        let randoms = randoms(plan.routing);
        let drawing = if randoms { plan.nodes.len() } else { 0 };
        Routing {
            mode: plan.routing,
            tables: Tables::new(&graph),
            names: plan.nodes.iter().map(|node| node.name.clone()).collect(),
            hashes,
            randoms: (0..drawing).map(|_| stream()).collect(),
            paths: Vec::new(),
            keeps_paths: !randoms && plan.changes.iter().all(|change| change.up.is_none()),
            flowlets: Flowlets::new(plan.flowlet_gap.unwrap_or(Time::ZERO)),
            valiant: (plan.routing == ackclock_plan::Routing::Valiant)
                .then(|| Valiant::new(&graph, FlowHash::draw(random))),
            spare: Vec::new(),
            graph,
        }
    }

    /// Open the flow in a slot between two hosts, or with explicit paths (`None`). Hashes use its number, so that
    /// successive flows in a slot differ.
    ///
    /// # Errors
    /// No path leads from one host to the other.
    pub fn open(
        &mut self,
        slot: usize,
        number: u32,
        ends: Option<EndsPlan>,
    ) -> Result<(), PlanError> {
        if self.paths.len() <= slot {
            self.paths.resize(slot + 1, FlowPaths::NOT_ROUTED);
        }
        self.paths[slot] = FlowPaths::NOT_ROUTED;
        self.flowlets.open(slot);
        let Some(ends) = ends else {
            return Ok(());
        };
        let mut paths = FlowPaths {
            source: ends.source,
            destination: ends.destination,
            key: number.wrapping_mul(2),
            ..FlowPaths::NOT_ROUTED
        };
        if self.valiant.is_some() {
            self.detour(slot, number, ends)?;
        } else if self.keeps_paths {
            self.keep(&mut paths)?;
        }
        self.paths[slot] = paths;
        if self.keeps_paths {
            Ok(())
        } else {
            // A failed link may recover, so the flow is routed all the same.
            self.check_ends(ends)
        }
    }

    /// Trace the links of both paths and store them if they fit.
    fn keep(&mut self, paths: &mut FlowPaths) -> Result<(), PlanError> {
        let forward = self.trace(paths.source, paths.destination, paths.key(true))?;
        let reverse = self.trace(paths.destination, paths.source, paths.key(false))?;
        if forward.len() + reverse.len() <= KEPT_LINKS {
            paths.forward = forward.len() as u8;
            paths.reverse = reverse.len() as u8;
            for (slot, link) in paths
                .links
                .iter_mut()
                .zip(forward.into_iter().chain(reverse))
            {
                *slot = link;
            }
        }
        Ok(())
    }

    /// Links from a node to a host that a key selects.
    fn trace(&mut self, source: u32, destination: u32, key: u32) -> Result<Vec<u32>, PlanError> {
        let (mut node, mut links) = (source, Vec::new());
        while node != destination {
            let link = self.choose(node, destination, key);
            let link = link.ok_or_else(|| self.unreachable(source, destination))?;
            links.push(link);
            node = self.graph.to[link as usize];
        }
        Ok(links)
    }

    /// Check that paths lead from one host to the other and back.
    ///
    /// # Errors
    /// There is no path in one of the directions.
    pub fn check_ends(&mut self, ends: EndsPlan) -> Result<(), PlanError> {
        self.check_path(ends.source, ends.destination)?;
        self.check_path(ends.destination, ends.source)
    }

    /// Links of a flow's two paths; `None` if each packet draws its own, or there is none.
    pub fn paths_of(&mut self, number: u32, ends: EndsPlan) -> Option<Vec<u32>> {
        let mut links = self.forward_path(number, ends)?;
        links.extend(self.path_links(ends.destination, ends.source, number.wrapping_mul(2) + 1)?);
        Some(links)
    }

    /// Links of a flow's forward path; `None` if each packet draws its own, or there is none.
    pub fn forward_path(&mut self, number: u32, ends: EndsPlan) -> Option<Vec<u32>> {
        self.path_links(ends.source, ends.destination, number.wrapping_mul(2))
    }

    /// Links of a flow's forward path; one of the possible paths if each packet draws its own.
    pub fn sample_forward_path(&mut self, number: u32, ends: EndsPlan) -> Option<Vec<u32>> {
        let mode = self.mode;
        if randoms(mode) {
            self.mode = ackclock_plan::Routing::Ecmp;
        }
        let found = self.forward_path(number, ends);
        self.mode = mode;
        found
    }

    fn path_links(&mut self, source: u32, destination: u32, key: u32) -> Option<Vec<u32>> {
        if randoms(self.mode) {
            return None;
        }
        self.trace_by(source, destination, key).ok()
    }

    fn check_path(&mut self, source: u32, destination: u32) -> Result<(), PlanError> {
        let (graph, spare) = (&self.graph, &mut self.spare);
        let links = self.tables.next_links(graph, source, destination, spare);
        if links.is_empty() {
            return Err(self.unreachable(source, destination));
        }
        Ok(())
    }

    fn unreachable(&self, source: u32, destination: u32) -> PlanError {
        PlanError::Unreachable {
            source_name: self.names[source as usize].clone(),
            destination_name: self.names[destination as usize].clone(),
        }
    }

    /// First link of the forward or reverse path of the flow in a slot.
    #[inline]
    pub fn first(&mut self, slot: usize, forward: bool, now: Time) -> Next {
        let Some(&paths) = self.paths.get(slot).filter(|paths| paths.source != NONE) else {
            return Next::NotRouted;
        };
        if paths.forward > 0 {
            let index = if forward { 0 } else { paths.forward };
            return Next::Link(paths.links[usize::from(index)]);
        }
        if let Some(path_links) = self.detour_of(slot) {
            return path_links.at(forward, 0);
        }
        let path_links = Lookup {
            slot,
            now,
            destination: paths.end(forward),
            key: paths.key(forward),
        };
        self.lookup(paths.end(!forward), path_links)
    }

    /// First link of all packets of a flow, if it is fixed.
    pub fn first_link(&self, slot: usize) -> Option<u32> {
        let paths = &self.paths[slot];
        (paths.forward > 0).then(|| paths.links[0])
    }

    /// Next hop of a packet that has reached a node, of the flow in a slot.
    #[inline(always)]
    pub fn next(&mut self, slot: usize, packet: &Packet, node: u32, now: Time) -> Next {
        let Some(paths) = self.paths.get(slot) else {
            return Next::NotRouted;
        };
        let forward = packet.kind.is_forward();
        if paths.forward > 0 {
            let hop = packet.hop + 1;
            let (start, length) = if forward {
                (0, paths.forward)
            } else {
                (paths.forward, paths.reverse)
            };
            if hop == length {
                return Next::Arrived;
            }
            return Next::Link(paths.links[usize::from(start + hop) % KEPT_LINKS]);
        }
        if paths.source == NONE {
            return Next::NotRouted;
        }
        let (destination, key) = (paths.end(forward), paths.key(forward));
        if let Some(path_links) = self.detour_of(slot) {
            return path_links.at(forward, packet.hop + 1);
        }
        let path_links = Lookup {
            slot,
            now,
            destination,
            key,
        };
        self.lookup(node, path_links)
    }

    #[inline]
    fn lookup(&mut self, node: u32, path_links: Lookup) -> Next {
        if node == path_links.destination {
            return Next::Arrived;
        }
        let link = if self.mode == ackclock_plan::Routing::Flowlet {
            self.next_of_flowlet(node, path_links)
        } else {
            self.choose(node, path_links.destination, path_links.key)
        };
        link.map_or(Next::Unreachable, Next::Link)
    }

    /// Link of a packet's flowlet at a node; a new flowlet draws one.
    fn next_of_flowlet(&mut self, node: u32, path_links: Lookup) -> Option<u32> {
        let kept = self
            .flowlets
            .at(path_links.slot, (node, path_links.key & 1), path_links.now);
        let link = match kept.filter(|&link| self.graph.up[link as usize]) {
            Some(link) => link,
            None => self.choose(node, path_links.destination, path_links.key)?,
        };
        self.flowlets.take(
            path_links.slot,
            (node, path_links.key & 1),
            link,
            path_links.now,
        );
        Some(link)
    }

    /// Link by which a packet with this key leaves a node.
    #[inline]
    fn choose(&mut self, node: u32, destination: u32, key: u32) -> Option<u32> {
        use ackclock_plan::Routing::{Ecmp, EcmpPacket, Flowlet, Single, Valiant, Weighted};
        let (graph, spare) = (&self.graph, &mut self.spare);
        let links = self.tables.next_links(graph, node, destination, spare);
        if links.len() <= 1 {
            return links.first().copied();
        }
        let node = node as usize;
        let index = match self.mode {
            Single => 0,
            Ecmp | Valiant => self.hashes[node].queue(key, links.len()),
            EcmpPacket | Flowlet => {
                let draw = self.randoms[node].next_u64() >> 32;
                ((draw * links.len() as u64) >> 32) as usize
            }
            Weighted => weighted(self.hashes[node].of(key), links, &graph.weights),
        };
        Some(links[index])
    }

    /// Rebuild the tables after a link has failed or recovered.
    pub fn set_up(&mut self, link: usize, up: bool) {
        self.graph.up[link] = up;
        self.tables = Tables::new(&self.graph);
    }

    /// Destination node of a link; `u32::MAX` if it has no ends.
    pub fn end_of(&self, link: usize) -> u32 {
        self.graph.to[link]
    }
}

/// True if each packet draws its path, so that a flow has no fixed one.
fn randoms(mode: ackclock_plan::Routing) -> bool {
    use ackclock_plan::Routing::{EcmpPacket, Flowlet};
    matches!(mode, EcmpPacket | Flowlet)
}

/// Index of the link into whose share of the hash's range a value falls.
fn weighted(value: u32, links: &[u32], weights: &[f64]) -> usize {
    let weight = |&link: &u32| weights[link as usize];
    let sum: f64 = links.iter().map(weight).sum();
    let mut left = f64::from(value) / 2_f64.powi(32) * sum;
    let within = |link: &u32| {
        left -= weight(link);
        left < 0.0
    };
    links.iter().position(within).unwrap_or(links.len() - 1)
}
