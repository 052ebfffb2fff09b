//! Nodes and the links between them.

use ackclock_plan::Plan;

/// No node, no group, or no distance.
pub const NONE: u32 = u32::MAX;

/// A directed graph whose links can fail. A link without ends belongs to no node.
#[derive(Debug)]
pub struct Graph {
    /// True for hosts, by node.
    pub is_host: Vec<bool>,
    /// Source node, by link.
    pub from: Vec<u32>,
    /// Destination node, by link.
    pub to: Vec<u32>,
    /// Share among equally short paths, by link.
    pub weights: Vec<f64>,
    /// True for links that are up.
    pub up: Vec<bool>,
    leaving: Lists,
    entering: Lists,
}

impl Graph {
    /// The graph of a plan, all links up.
    pub fn new(plan: &Plan) -> Graph {
        let from: Vec<u32> = plan
            .links
            .iter()
            .map(|link| link.ends.map_or(NONE, |ends| ends.source))
            .collect();
        let to: Vec<u32> = plan
            .links
            .iter()
            .map(|link| link.ends.map_or(NONE, |ends| ends.destination))
            .collect();
        let nodes = plan.nodes.len();
        Graph {
            is_host: plan.nodes.iter().map(|node| node.host).collect(),
            weights: plan.links.iter().map(|link| link.weight).collect(),
            up: vec![true; plan.links.len()],
            leaving: Lists::by(&from, nodes),
            entering: Lists::by(&to, nodes),
            from,
            to,
        }
    }

    /// Nodes.
    pub fn nodes(&self) -> usize {
        self.is_host.len()
    }

    /// Links from a node that are up, in the order of their numbers.
    pub fn links_from(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let links = self.leaving.of(node as usize).iter().copied();
        links.filter(|&link| self.up[link as usize])
    }

    /// Links to a node that are up, in the order of their numbers.
    pub fn links_to(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let links = self.entering.of(node as usize).iter().copied();
        links.filter(|&link| self.up[link as usize])
    }
}

/// Lists of numbers, one after the other in memory (compressed rows).
#[derive(Debug, Default)]
pub struct Lists {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    /// Indexes of each node in `keys`, in rising order.
    fn by(keys: &[u32], nodes: usize) -> Lists {
        let mut rows = vec![Vec::new(); nodes];
        for (index, &key) in (0..).zip(keys) {
            if key != NONE {
                rows[key as usize].push(index);
            }
        }
        let mut lists = Lists::default();
        for row in rows {
            lists.push(row);
        }
        lists
    }

    /// Add a list.
    pub fn push(&mut self, row: impl IntoIterator<Item = u32>) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        self.items.extend(row);
        self.starts.push(self.items.len() as u32);
    }

    /// The list number `row`.
    #[inline]
    pub fn of(&self, row: usize) -> &[u32] {
        &self.items[self.starts[row] as usize..self.starts[row + 1] as usize]
    }
}
