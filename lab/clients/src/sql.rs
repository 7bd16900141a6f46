//! The statements that the rows of PostgreSQL share. Times are microseconds since 1970.

/// The time at which the server executes it.
pub const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// As many rows as a job computes for.
pub const ROWS: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint \
                        FROM generate_series(1, 8)";

/// So many that they are in flight for as long as they are read: some 200 bytes each.
pub const MANY_ROWS: &str = "SELECT n::bigint, repeat('x', 200) FROM generate_series(1, 10000) n";

/// Two statements of a transaction.
pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS results (id bigserial PRIMARY KEY, sum bigint)";
pub const INSERT: &str = "INSERT INTO results (sum) VALUES ($1)";
