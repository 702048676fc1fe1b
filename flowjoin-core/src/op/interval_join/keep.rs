//! What an interval join keeps over a crash: under each key its rows, and of each whether it has met a partner, or else
//! when the gap beside it is told.
//!
//! When rows close follows from their times. How long rows waited for each other is reckoned anew.

use serde::{Deserialize, Serialize};

use super::IntervalJoin;
use crate::account::Account;
use crate::error::OpError;
use crate::key::Key;
use crate::state::{Due, Expiry, Fields, Sealed, Sealing, Side, decode, encode};
use crate::time::Watermark;

// What belongs to the task.
#[derive(Serialize, Deserialize)]
struct Record {
    accounts: [Account; 2],
    emitted: u64,
    read: [bool; 2],
}

const RECORD: u8 = 0;
const KEYS: u8 = 1;

impl<K: Key> IntervalJoin<K> {
    pub(super) fn keep_state(&mut self) {
        self.line.keep();
    }

    pub(super) fn seal_state(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        let record = Record { accounts: self.accounts, emitted: self.rows.emitted(), read: self.read };
        into.put_own(RECORD, &[], &encode(&record));
        let IntervalJoin { line, rows, met, gaps, .. } = self;
        line.seal(KEYS, into, |side, id, out| {
            let own = side.index();
            let has_met = met[own].contains(id);
            Fields(out).number(u64::from(has_met));
            if !has_met {
                gaps[own].write(id, Fields(out));
            }
            Fields(out).bytes(|out| rows.write_row(own, id, out))?;
            Ok(())
        })
    }

    pub(super) fn take_back_state(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        match sealed.part {
            RECORD => {
                let record: Record = decode(sealed.value)?;
                (self.accounts, self.read) = (record.accounts, record.read);
                self.rows.go_on(record.emitted);
                Ok(())
            }
            KEYS => self.take_back_key(sealed),
            part => Err(OpError::unreadable("a part of an interval join", &part)),
        }
    }

    fn take_back_key(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        let IntervalJoin { spec, line, rows, closing, waiting, met, gaps, .. } = self;
        line.take_back(sealed, |side, time, hash, from| {
            let own = side.index();
            let has_met = from.number()? == 1;
            let told = if has_met { None } else { gaps[own].read(from)? };
            let id = rows.read_row(own, from.bytes()?, time, None)?;
            closing[own].push(Due { at: spec.bounds.closes(side, time).as_millis(), id, hash });
            if has_met {
                met[own].insert(id);
            } else {
                waiting[own].push(Due { at: time.as_millis(), id, hash });
            }
            if let Some(told) = told {
                gaps[own].put_back(id, hash, told);
            }
            Ok(id)
        })
    }

    pub(super) fn resume_at(&mut self, watermark: Watermark) {
        self.watermark = watermark;
        // Whether the unmatched rows of a side are read was not known yet when its rows came back.
        for side in [Side::Left, Side::Right] {
            if !self.may_come_out(side) {
                self.waiting[side.index()] = Expiry::new(self.spec.bounds.stay());
            }
        }
    }
}
