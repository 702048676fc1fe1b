//! Rows computed from a counter, at a rate if wished: for demonstrations and measurements.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flowjoin_core::io::{Endpoint, Page, ReadStatus, Reader, StreamSource, TableChange, TableSource};
use flowjoin_core::{Data, IoError, Keyed};
use tokio::time::Instant;

/// Rows computed from the numbers 0, 1, 2 .., as a source.
///
/// Partition `p` of `n` has the numbers that leave `p` when divided by `n`, in order. Without a count it never ends;
/// without a rate it is as fast as the flow. The same numbers come in every run.
///
/// ```
/// use flowjoin_connectors::Generate;
/// use flowjoin_core::io::{Page, StreamSource};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let squares = Generate::new("squares", |i| i * i).count(5).partitions(2);
/// let mut page = Page::default();
/// squares.open(1)?.read(&mut page, 1024).await?;
/// assert_eq!(page.rows, [1, 9]);
/// # Ok(())
/// # }
/// ```
///
/// [`Generate::table`] is the source of a table: of each number come the changes that the function gives.
pub struct Generate<T> {
    name: String,
    make: Arc<Make<T>>,
    count: Option<u64>,
    partitions: usize,
    rate: Option<u64>,
}

// Takes up to so many numbers, but none once there are so many rows, and appends what they give. It is called once a
// page, not once a number.
type Make<T> = dyn Fn(&mut Numbers, Room, &mut Vec<T>) + Send + Sync;

#[derive(Clone, Copy)]
struct Room {
    numbers: usize,
    rows: usize,
}

impl<T: Data> Generate<T> {
    /// One endless partition, as fast as the flow takes it.
    pub fn new(name: impl Into<String>, make: impl Fn(u64) -> T + Send + Sync + 'static) -> Generate<T> {
        Generate::making(name.into(), move |numbers, room, rows| {
            rows.reserve(room.numbers);
            rows.extend(numbers.take(room.numbers).map(&make));
        })
    }
}

impl<T: Keyed> Generate<TableChange<T>> {
    /// The source of a table: of each number come the changes that the function gives for it, in order; none is fine.
    ///
    /// Counted, dealt out and held to the rate are the numbers. All changes of a key have to come from one partition:
    /// with `n` partitions, from numbers that leave the same rest when divided by `n`.
    ///
    /// ```
    /// use flowjoin_connectors::Generate;
    /// use flowjoin_core::Keyed;
    /// use flowjoin_core::io::{Page, TableChange, TableSource};
    ///
    /// #[derive(Clone, serde::Serialize, serde::Deserialize)]
    /// struct Seat {
    ///     number: u64,
    ///     taken: bool,
    /// }
    ///
    /// impl Keyed for Seat {
    ///     type Key = u64;
    ///     fn key(&self) -> u64 {
    ///         self.number
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Each seat is free at first and taken ten numbers later.
    /// let seats = Generate::table("seats", |i: u64| {
    ///     let later = i.checked_sub(10).map(|number| TableChange::Put(Seat { number, taken: true }));
    ///     [TableChange::Put(Seat { number: i, taken: false })].into_iter().chain(later)
    /// });
    /// let mut page = Page::default();
    /// seats.count(12).open(0)?.read(&mut page, 1024).await?;
    /// assert_eq!(page.rows.len(), 12 + 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn table<C>(name: impl Into<String>, make: impl Fn(u64) -> C + Send + Sync + 'static) -> Self
    where
        C: IntoIterator<Item = TableChange<T>>,
    {
        Generate::making(name.into(), move |numbers, room, changes| {
            for number in numbers.take(room.numbers) {
                changes.extend(make(number));
                if changes.len() >= room.rows {
                    return;
                }
            }
        })
    }
}

impl<T> Generate<T> {
    fn making(name: String, make: impl Fn(&mut Numbers, Room, &mut Vec<T>) + Send + Sync + 'static) -> Generate<T> {
        Generate { name, make: Arc::new(make), count: None, partitions: 1, rate: None }
    }

    /// Ends after the numbers below `count`, over all partitions.
    pub fn count(mut self, count: u64) -> Generate<T> {
        self.count = Some(count);
        self
    }

    /// Deals the numbers out to so many partitions, at least one.
    pub fn partitions(mut self, partitions: usize) -> Generate<T> {
        self.partitions = partitions;
        self
    }

    /// At most so many numbers a second, over all partitions, at least one. What the flow could not take in time is made
    /// up for, up to one second of it.
    pub fn rate(mut self, numbers_per_second: u64) -> Generate<T> {
        self.rate = Some(numbers_per_second);
        self
    }

    fn to_endpoint(&self, what: &str) -> Endpoint {
        let count = self.count.map_or_else(|| "endless".to_string(), |count| format!("{count} {what}"));
        let rate = self.rate.map_or_else(String::new, |rate| format!(", {rate} a second"));
        Endpoint::new("generate", &self.name).with_detail(count + &rate)
    }

    fn checked_partitions(&self) -> Result<usize, IoError> {
        match self.partitions {
            0 => Err(IoError::new(format!("`{}` has 0 partitions; it needs at least one", self.name))),
            count => Ok(count),
        }
    }

    fn reader(&self, partition: usize) -> Result<GenerateReader<T>, IoError> {
        if partition >= self.partitions {
            let count = self.partitions;
            return Err(IoError::new(format!("`{}` has {count} partitions and no {partition}", self.name)));
        }
        let pace = match self.rate {
            None => None,
            Some(0) => return Err(IoError::new(format!("`{}` has a rate of 0; it would never begin", self.name))),
            Some(rate) => Some(Pace::new(rate, partition as u64, self.partitions as u64)),
        };
        let (partition, step) = (partition as u64, self.partitions as u64);
        let count = self.count.map_or(u64::MAX, |count| count.saturating_sub(partition).div_ceil(step));
        let numbers = Numbers { first: partition, step, made: 0, count };
        Ok(GenerateReader { make: self.make.clone(), numbers, over: Vec::new(), pace, ends: self.count.is_some() })
    }
}

impl<T> std::fmt::Debug for Generate<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Generate({})", self.name)
    }
}

impl<T: Data> StreamSource<T> for Generate<T> {
    fn endpoint(&self) -> Endpoint {
        self.to_endpoint("rows")
    }

    fn partitions(&self) -> Result<usize, IoError> {
        self.checked_partitions()
    }

    fn open(&self, partition: usize) -> Result<Box<dyn Reader<T>>, IoError> {
        Ok(Box::new(self.reader(partition)?))
    }
}

impl<T: Keyed> TableSource<T> for Generate<TableChange<T>> {
    fn endpoint(&self) -> Endpoint {
        self.to_endpoint("numbers")
    }

    fn partitions(&self) -> Result<usize, IoError> {
        self.checked_partitions()
    }

    fn open(&self, partition: usize) -> Result<Box<dyn Reader<TableChange<T>>>, IoError> {
        Ok(Box::new(self.reader(partition)?))
    }
}

struct GenerateReader<T> {
    make: Arc<Make<T>>,
    numbers: Numbers,
    // What a number gave beyond the end of a page.
    over: Vec<T>,
    pace: Option<Pace>,
    ends: bool,
}

#[async_trait]
impl<T: Send> Reader<T> for GenerateReader<T> {
    async fn read(&mut self, page: &mut Page<T>, max_rows: usize) -> Result<ReadStatus, IoError> {
        let max_rows = max_rows.max(1);
        loop {
            let mut numbers = self.numbers.left().min(max_rows as u64);
            if let Some(pace) = &mut self.pace
                && numbers > 0
            {
                // The only wait, while nothing has been taken.
                numbers = if self.over.is_empty() { numbers.min(pace.due().await) } else { 0 };
            }
            let made = self.numbers.made;
            page.rows.append(&mut self.over);
            (self.make)(&mut self.numbers, Room { numbers: numbers as usize, rows: max_rows }, &mut page.rows);
            if let Some(pace) = &mut self.pace {
                pace.issued += self.numbers.made - made;
            }
            if page.rows.len() > max_rows {
                self.over = page.rows.split_off(max_rows);
            }
            if self.numbers.left() == 0 && self.over.is_empty() {
                return Ok(ReadStatus::End);
            }
            if !page.rows.is_empty() {
                return Ok(ReadStatus::More);
            }
        }
    }

    fn done(&self) -> Option<(u64, u64)> {
        self.ends.then_some((self.numbers.made, self.numbers.count))
    }
}

/// The numbers of one partition.
struct Numbers {
    first: u64,
    step: u64,
    made: u64,
    count: u64,
}

impl Numbers {
    fn left(&self) -> u64 {
        self.count - self.made
    }
}

impl Iterator for Numbers {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.left() == 0 {
            return None;
        }
        // Beyond 2^64 the numbers have run out; no program gets there.
        let number = self.made.checked_mul(self.step)?.checked_add(self.first)?;
        self.made += 1;
        Some(number)
    }
}

/// Says how many rows are due: number `n` is, `n / rate` seconds after the first read, whatever its partition.
struct Pace {
    rate: u128,
    partition: u128,
    partitions: u128,
    since: Option<Instant>,
    /// Rows since then.
    issued: u64,
}

impl Pace {
    fn new(rate: u64, partition: u64, partitions: u64) -> Pace {
        let [rate, partition, partitions] = [rate, partition, partitions].map(u128::from);
        Pace { rate, partition, partitions, since: None, issued: 0 }
    }

    /// Waits until a row is due and says how many are. Nothing is lost if the wait is given up.
    async fn due(&mut self) -> u64 {
        let since = *self.since.get_or_insert_with(Instant::now);
        let next = self.time_of(self.issued);
        tokio::time::sleep_until(since + next).await;
        let now = Instant::now();
        let passed = now.duration_since(since);
        if passed.saturating_sub(next) > CATCH_UP_MAX {
            // What is more than a second behind is forgotten.
            self.since = Some(now - CATCH_UP_MAX);
            self.issued = 0;
            return self.rows_by(CATCH_UP_MAX).max(1);
        }
        self.rows_by(passed).saturating_sub(self.issued).max(1)
    }

    /// How many rows of this partition are due by then.
    fn rows_by(&self, passed: Duration) -> u64 {
        let latest_due = passed.as_nanos() * self.rate / NANOS;
        let rows = latest_due.checked_sub(self.partition).map_or(0, |beyond| beyond / self.partitions + 1);
        u64::try_from(rows).unwrap_or(u64::MAX)
    }

    /// When row `index` of this partition is due, rounded up, so that it is due then by `rows_by`.
    fn time_of(&self, index: u64) -> Duration {
        let number = u128::from(index) * self.partitions + self.partition;
        let nanos = (number * NANOS).div_ceil(self.rate);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

const NANOS: u128 = 1_000_000_000;
const CATCH_UP_MAX: Duration = Duration::from_secs(1);
