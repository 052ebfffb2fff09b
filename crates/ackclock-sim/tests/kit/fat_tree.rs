//! m-port n-trees: fat trees of equal switches.
//!
//! X.-Y. Lin, Y.-C. Chung, T.-Y. Huang: A multiple LID routing scheme for fat-tree-based InfiniBand networks,
//! IPDPS 2004. 2(m/2)ⁿ hosts, (2n−1)(m/2)ⁿ⁻¹ switches.

/// Nodes are numbered: hosts, then switches, the roots first.
#[derive(Clone, Debug)]
pub struct FatTree {
    ports: u32,
    levels: u32,
}

impl FatTree {
    pub fn new(ports: u32, levels: u32) -> FatTree {
        assert!(ports >= 2 && ports.is_multiple_of(2) && levels >= 1);
        FatTree { ports, levels }
    }

    fn half(&self) -> u32 {
        self.ports / 2
    }

    pub fn hosts(&self) -> u32 {
        2 * self.half().pow(self.levels)
    }

    fn roots(&self) -> u32 {
        self.half().pow(self.levels - 1)
    }

    pub fn switches(&self) -> u32 {
        (2 * self.levels - 1) * self.roots()
    }

    pub fn nodes(&self) -> u32 {
        self.hosts() + self.switches()
    }

    /// The level of a node: 0 for roots, `levels` for hosts.
    pub fn level(&self, node: u32) -> u32 {
        if node < self.hosts() {
            return self.levels;
        }
        let number = node - self.hosts();
        if number < self.roots() {
            0
        } else {
            1 + (number - self.roots()) / (2 * self.roots())
        }
    }

    /// The digits of a switch or host within its level: the first up to m, the others up to m/2.
    fn digits(&self, mut number: u32, count: u32) -> Vec<u32> {
        let mut digits = vec![0; count as usize];
        for digit in digits.iter_mut().skip(1).rev() {
            *digit = number % self.half();
            number /= self.half();
        }
        if let Some(first) = digits.first_mut() {
            *first = number;
        }
        digits
    }

    fn number(&self, digits: &[u32]) -> u32 {
        digits
            .iter()
            .fold(0, |number, digit| number * self.half() + digit)
    }

    fn switch(&self, level: u32, digits: &[u32]) -> u32 {
        let before = if level == 0 {
            0
        } else {
            (2 * level - 1) * self.roots()
        };
        self.hosts() + before + self.number(digits)
    }

    /// The pairs of joined nodes, the upper one second.
    pub fn edges(&self) -> Vec<(u32, u32)> {
        let mut edges = Vec::new();
        for host in 0..self.hosts() {
            let digits = self.digits(host, self.levels);
            let of_switch = &digits[..self.levels as usize - 1];
            edges.push((host, self.switch(self.levels - 1, of_switch)));
        }
        for level in (1..self.levels).rev() {
            for number in 0..2 * self.roots() {
                let lower = self.digits(number, self.levels - 1);
                for up in 0..self.half() {
                    let mut upper = lower.clone();
                    upper[level as usize - 1] = up;
                    edges.push((self.switch(level, &lower), self.switch(level - 1, &upper)));
                }
            }
        }
        edges
    }

    /// Equally short paths between two hosts: (m/2) to the power of the levels to climb beyond the first.
    pub fn paths(&self, source: u32, destination: u32) -> u32 {
        let (a, b) = (
            self.digits(source, self.levels),
            self.digits(destination, self.levels),
        );
        let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count() as u32;
        self.half().pow(self.levels - 1 - common)
    }
}
