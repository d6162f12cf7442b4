//! Makes `data/customers-1000.csv`: invented people, always the same for one seed.

use std::fmt::Write as _;

/// The seed of the file in the repository.
pub const SEED: u64 = 2024;

/// A CSV of so many customers, with a header.
pub fn csv(rows: u32, seed: u64) -> String {
    let mut r = Random(seed);
    let mut out = String::from(
        "Index,Customer Id,First Name,Last Name,Company,City,Country,Phone 1,Phone 2,Email,Subscription Date,Website\n",
    );
    for index in 1..=rows {
        let (first, last) = (r.of(FIRST), r.of(LAST));
        let company = match r.below(3) {
            0 => format!("{last}-{}", r.of(LAST)),
            1 => format!("\"{}, {} and {}\"", r.of(LAST), r.of(LAST), r.of(LAST)),
            _ => format!(
                "{} {}",
                r.of(LAST),
                r.of(&["PLC", "Ltd", "Inc", "Group", "LLC"])
            ),
        };
        let city = format!(
            "{}{}",
            r.of(CITY),
            r.of(&["ton", "ville", "burgh", "mouth", "side", "stad", "port"])
        );
        // Low numbers more often: some countries are more common than others.
        let country = COUNTRY[r.index(COUNTRY.len()).min(r.index(COUNTRY.len()))];
        let domain = format!(
            "{}.{}",
            r.of(&[
                "mail", "post", "inbox", "example", "letters", "office", "webbox", "home"
            ]),
            r.of(&[
                "com", "com", "com", "net", "net", "org", "org", "biz", "info"
            ]),
        );
        // Customers come faster in spring, and faster year by year.
        let year = 2020 + r.below(3).max(r.below(3));
        let month = 1 + (r.below(12) + r.below(7)) % 12;
        let _ = writeln!(
            out,
            "{index},{:015x},{first},{last},{company},{city},{country},{},{},{}{}@{domain},{year}-{month:02}-{:02},https://www.{}{}.{}/",
            r.below(1 << 60),
            r.phone(),
            r.phone(),
            first.to_lowercase(),
            r.below(900) + 100,
            1 + r.below(28),
            last.to_lowercase(),
            r.below(90) + 10,
            r.of(&["com", "net", "org", "info"]),
        );
    }
    out
}

/// `SplitMix64`: small, seeded, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap_or(0)
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.index(all.len())]
    }

    fn phone(&mut self) -> String {
        let (a, b, c) = (
            self.below(900) + 100,
            self.below(900) + 100,
            self.below(9000) + 1000,
        );
        match self.below(4) {
            0 => format!("({a}){b}-{c}"),
            1 => format!("{a}-{b}-{c}"),
            2 => format!("+1-{a}-{b}-{c}"),
            _ => format!("{a}.{b}.{c}x{}", self.below(900) + 100),
        }
    }
}

const FIRST: &[&str] = &[
    "Amara", "Anton", "Aya", "Bela", "Bruno", "Carla", "Chen", "Dario", "Dina", "Edda", "Elias",
    "Emre", "Fatima", "Felix", "Greta", "Hana", "Henrik", "Ida", "Igor", "Ines", "Jana", "Joao",
    "Kaito", "Karim", "Lena", "Lucia", "Mateo", "Mila", "Nadia", "Nils", "Olga", "Omar", "Paula",
    "Petra", "Quinn", "Rosa", "Samir", "Tara", "Uma", "Viktor", "Wanda", "Yara", "Zeno",
];
const LAST: &[&str] = &[
    "Abbott", "Baker", "Castro", "Dietrich", "Eriksen", "Fischer", "Garcia", "Haddad", "Ito",
    "Jansen", "Kowalski", "Larsen", "Moreau", "Novak", "Okafor", "Petrov", "Quiroga", "Rossi",
    "Schmidt", "Tanaka", "Ueda", "Vargas", "Weber", "Xu", "Yilmaz", "Zhang", "Amin", "Brandt",
    "Costa", "Dubois", "Eklund", "Ferrari", "Gruber", "Horvat",
];
const CITY: &[&str] = &[
    "Alder", "Birch", "Cedar", "Dale", "East", "Fern", "Glen", "Hazel", "Iron", "Juniper", "Kings",
    "Lake", "Maple", "New", "Oak", "Pine", "Queens", "River", "South", "Thorn", "Under", "Vale",
    "West", "Yew",
];
const COUNTRY: &[&str] = &[
    "Germany", "Brazil", "Japan", "Nigeria", "Canada", "France", "India", "Mexico", "Poland",
    "Spain", "Turkey", "Italy", "Kenya", "Norway", "Chile", "Egypt", "Greece", "Vietnam",
    "Portugal", "Sweden", "Peru", "Morocco", "Finland", "Ghana", "Austria", "Denmark", "Ireland",
    "Croatia", "Estonia", "Uruguay", "Iceland", "Malta",
];

#[cfg(test)]
mod tests {
    #[test]
    fn the_file_in_the_repository_is_what_this_makes() {
        let shipped = include_str!("../data/customers-1000.csv");
        assert!(
            super::csv(1000, super::SEED) == shipped,
            "run: cargo run -p sandbox-examples --example customers > examples/data/customers-1000.csv"
        );
    }
}
