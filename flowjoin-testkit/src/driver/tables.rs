//! Changes of tables, sent to their sources.

use flowjoin_core::io::{Page, TableChange};
use flowjoin_core::op::source::AnyPage;
use flowjoin_core::{Event, Keyed};

use super::TestFlow;

impl TestFlow {
    /// Sends changes of a table to its source as one batch.
    ///
    /// # Panics
    /// If there is no such source, it has ended, or it is not one of changes of this table.
    pub fn change_all<T: Event + Keyed>(&mut self, table: &str, changes: Vec<TableChange<T>>) -> &mut Self {
        let arrival = self.now.as_event_time();
        let newest = changes.iter().filter_map(|change| change.event_time(arrival)).max();
        let source = self.source(table);
        assert!(self.is_table(source), "`{table}` is a stream and no table: its rows are sent by `send`");
        self.expect_takes(source, 0, changes.len());
        self.take_page(source, 0, AnyPage::new(Page { rows: changes, ..Page::default() }), newest)
    }

    /// Puts a row into a table: it takes the place of the one with its key.
    ///
    /// # Panics
    /// As [`change_all`](Self::change_all).
    pub fn put<T: Event + Keyed>(&mut self, table: &str, row: T) -> &mut Self {
        self.change_all(table, vec![TableChange::Put(row)])
    }

    /// Deletes the row of a key from a table.
    ///
    /// # Panics
    /// As [`change_all`](Self::change_all).
    pub fn delete<T: Event + Keyed>(&mut self, table: &str, key: T::Key) -> &mut Self {
        self.change_all(table, vec![TableChange::<T>::delete(key)])
    }
}
