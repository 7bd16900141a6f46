//! sqlx: rows as a stream. The I/O lane reads them ahead; the job computes.

use sqlx::PgPool;
use twolane::io::Bridged;
use twolane::{Handle, HandleExt};

/// At most so many rows are read ahead.
const AHEAD: usize = 1024;

pub fn times(pool: &PgPool) -> Bridged<sqlx::Result<i64>> {
    let pool = Handle::current().io_owned(pool.clone());
    pool.into_stream(
        |pool| sqlx::query_scalar(crate::sql::ROWS).fetch(&*pool),
        AHEAD,
        |_| 1,
    )
}
