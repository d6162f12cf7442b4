//! Prints the CSV that `data_analysis` ships.
//!
//!     cargo run -p sandbox-examples --example customers > examples/data/customers-1000.csv

use std::io::Write as _;

use sandbox_examples::customers;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(customers::csv(1000, customers::SEED).as_bytes())
}
