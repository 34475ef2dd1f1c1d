//! The deliveries of one channel that are not settled, and in how few words some of them can be.

use std::collections::BTreeSet;

/// Delivery tags.
#[derive(Debug, Default)]
pub(crate) struct Unsettled(BTreeSet<u64>);

/// What is to be written, in this order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// Each with whether it goes back to its queue.
    pub(crate) nacks: Vec<(u64, bool)>,
    /// All up to this one, or just this one when it is the only one.
    pub(crate) up_to: Option<(u64, bool)>,
    pub(crate) acks: Vec<u64>,
}

impl Unsettled {
    pub(crate) fn extend(&mut self, tags: impl IntoIterator<Item = u64>) {
        self.0.extend(tags);
    }

    pub(crate) fn remove(&mut self, tag: u64) -> bool {
        self.0.remove(&tag)
    }

    /// Takes them as settled. What is not among the unsettled is left out: the broker closes the channel over a tag that
    /// it does not know.
    pub(crate) fn settle(&mut self, accepted: &[u64], refused: &[(u64, bool)]) -> Words {
        let nacks: Vec<(u64, bool)> = refused.iter().copied().filter(|(tag, _)| self.0.remove(tag)).collect();
        let acked: BTreeSet<u64> = accepted.iter().copied().filter(|tag| self.0.contains(tag)).collect();
        let oldest = self.0.iter().zip(&acked).take_while(|(unsettled, acked)| unsettled == acked).count();
        let up_to = acked.iter().take(oldest).next_back().map(|tag| (*tag, oldest > 1));
        let acks = acked.iter().skip(oldest).copied().collect();
        self.0.retain(|tag| !acked.contains(tag));
        Words { nacks, up_to, acks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the broker makes of the words.
    fn broker(mut unsettled: BTreeSet<u64>, words: &Words) -> Result<BTreeSet<u64>, String> {
        let mut known = |tag: u64| unsettled.remove(&tag).then_some(()).ok_or(format!("unknown delivery tag {tag}"));
        for (tag, _) in &words.nacks {
            known(*tag)?;
        }
        if let Some((tag, _)) = words.up_to {
            known(tag)?;
        }
        for tag in &words.acks {
            known(*tag)?;
        }
        if let Some((up_to, true)) = words.up_to {
            unsettled.retain(|tag| *tag > up_to);
        }
        Ok(unsettled)
    }

    proptest! {
        #[test]
        fn the_broker_settles_what_was_meant_and_nothing_else(
            unsettled in proptest::collection::btree_set(1u64..40, 0..30),
            accepted in proptest::collection::vec(0u64..45, 0..30),
            refused in proptest::collection::vec((0u64..45, any::<bool>()), 0..10),
        ) {
            let mut ours = Unsettled(unsettled.clone());
            let words = ours.settle(&accepted, &refused);
            let meant = |tag: &u64| accepted.contains(tag) || refused.iter().any(|(refused, _)| refused == tag);
            let left: BTreeSet<u64> = unsettled.iter().copied().filter(|tag| !meant(tag)).collect();
            prop_assert_eq!(&broker(unsettled, &words), &Ok(left.clone()));
            prop_assert_eq!(ours.0, left);
        }
    }

    #[test]
    fn the_oldest_are_acked_in_one_word() {
        let mut unsettled = Unsettled::default();
        unsettled.extend(1..=6);
        let words = unsettled.settle(&[2, 1, 3, 5, 3], &[]);
        assert_eq!(words, Words { nacks: vec![], up_to: Some((3, true)), acks: vec![5] });
        assert_eq!(unsettled.settle(&[4, 3], &[]).up_to, Some((4, false)));
    }

    #[test]
    fn a_refusal_is_not_acked_along() {
        let mut unsettled = Unsettled::default();
        unsettled.extend(1..=3);
        let words = unsettled.settle(&[1, 3, 2], &[(2, true)]);
        assert_eq!(words, Words { nacks: vec![(2, true)], up_to: Some((3, true)), acks: vec![] });
    }
}
