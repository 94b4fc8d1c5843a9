//! Many short lists of numbers in one allocation.

/// For each index, a list of numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    /// Where each list begins; one more than there are lists.
    start: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    /// The lists in order.
    pub fn new<L: AsRef<[u32]>>(lists: impl IntoIterator<Item = L>) -> Lists {
        let mut made = Lists { start: vec![0], items: Vec::new() };
        for list in lists {
            made.items.extend_from_slice(list.as_ref());
            made.start.push(made.items.len() as u32);
        }
        made
    }

    /// `count` lists of the values of (list, value) pairs, each in the order of the pairs.
    pub fn grouped(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Lists {
        let mut start = vec![0u32; count + 1];
        for (list, _) in pairs.clone() {
            start[list as usize + 1] += 1;
        }
        for i in 0..count {
            start[i + 1] += start[i];
        }
        let mut next = start.clone();
        let mut items = vec![0u32; start[count] as usize];
        for (list, value) in pairs {
            items[next[list as usize] as usize] = value;
            next[list as usize] += 1;
        }
        Lists { start, items }
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.start.len() - 1
    }

    /// One list.
    pub fn get(&self, index: u32) -> &[u32] {
        let index = index as usize;
        &self.items[self.start[index] as usize..self.start[index + 1] as usize]
    }

    /// All (list, value) pairs.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        (0..self.len() as u32).flat_map(|list| self.get(list).iter().map(move |&value| (list, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_the_transpose() {
        let lists = Lists::new([vec![1, 2], vec![], vec![2]]);
        let back = Lists::grouped(3, lists.pairs().map(|(list, value)| (value, list)).collect::<Vec<_>>().into_iter());
        let all: Vec<&[u32]> = (0..3).map(|i| back.get(i)).collect();
        assert_eq!(all, [&[][..], &[0], &[0, 2]]);
    }
}
