//! Decimals as Kafka Connect sends them: the digits as one integer in bytes, and where the point stands.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::json::shown;

/// A decimal in plain digits, from the base64 of its unscaled value: `12.50` for 1250 with a scale of 2.
pub(super) fn plain(base64: &str, scale: i64) -> Result<String, String> {
    let bytes = STANDARD.decode(base64).map_err(|_| format!("\"{}\" is not the base64 of a decimal", shown(base64)))?;
    if bytes.is_empty() {
        return Err("a decimal has at least one byte, and this has none".to_string());
    }
    if bytes.len() > BYTES_MAX {
        return Err(format!("a decimal of {} bytes is longer than a database can have", bytes.len()));
    }
    if scale.unsigned_abs() > SCALE_MAX {
        return Err(format!("a decimal cannot have the scale {scale}"));
    }
    let is_negative = bytes[0] & 0x80 != 0;
    let digits = digits(magnitude(&bytes, is_negative));
    let sign = if is_negative { "-" } else { "" };
    Ok(format!("{sign}{}", with_point(digits, scale)))
}

/// Whether a JSON text is a string that is most likely the base64 of a decimal: it ends as no other text does, and has no
/// more bytes than an integer of 128 bits.
pub(super) fn may_be_one(text: &str) -> bool {
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let bytes = bare.filter(|bare| bare.ends_with('=')).and_then(|bare| STANDARD.decode(bare).ok());
    bytes.is_some_and(|bytes| (1..=16).contains(&bytes.len()))
}

/// The bytes are in two's complement, the highest first; so are the limbs, without the sign.
fn magnitude(bytes: &[u8], is_negative: bool) -> Vec<u32> {
    let sign: u32 = if is_negative { u32::MAX } else { 0 };
    let limb = |chunk: &[u8]| chunk.iter().fold(sign, |limb, byte| limb << 8 | u32::from(*byte)) ^ sign;
    let mut limbs: Vec<u32> = bytes.rchunks(4).rev().map(limb).collect();
    if is_negative {
        // The highest bit was the sign and is now zero, so this never carries beyond the highest limb.
        for limb in limbs.iter_mut().rev() {
            let carries;
            (*limb, carries) = limb.overflowing_add(1);
            if !carries {
                break;
            }
        }
    }
    limbs
}

fn digits(mut limbs: Vec<u32>) -> String {
    // Nine digits at a time, the lowest first.
    let mut groups = Vec::new();
    let mut start = 0;
    while start < limbs.len() {
        let mut rest = 0_u64;
        for limb in &mut limbs[start..] {
            let value = rest << 32 | u64::from(*limb);
            *limb = (value / GROUP) as u32;
            rest = value % GROUP;
        }
        groups.push(rest);
        start += limbs[start..].iter().take_while(|limb| **limb == 0).count();
    }
    let mut digits = groups.pop().unwrap_or_default().to_string();
    for group in groups.iter().rev() {
        digits.push_str(&format!("{group:09}"));
    }
    digits
}

fn with_point(mut digits: String, scale: i64) -> String {
    let places = scale.unsigned_abs() as usize;
    if scale <= 0 {
        if digits.bytes().any(|digit| digit != b'0') {
            digits.push_str(&"0".repeat(places));
        }
        return digits;
    }
    if digits.len() <= places {
        digits.insert_str(0, &"0".repeat(places + 1 - digits.len()));
    }
    digits.insert(digits.len() - places, '.');
    digits
}

const GROUP: u64 = 1_000_000_000;
/// PostgreSQL has up to 131072 digits before the point and 16383 behind it: 61 KB.
const BYTES_MAX: usize = 64 << 10;
const SCALE_MAX: u64 = 131_072;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], scale: i64, expected: &str) {
        assert_eq!(plain(&STANDARD.encode(bytes), scale).unwrap(), expected, "{bytes:?} {scale}");
    }

    #[test]
    fn the_point_stands_where_the_scale_says() {
        check(&[0x04, 0xE2], 2, "12.50");
        check(&[0x04, 0xE2], 0, "1250");
        check(&[0x04, 0xE2], 4, "0.1250");
        check(&[0x04, 0xE2], 6, "0.001250");
        check(&[0x04, 0xE2], -3, "1250000");
        check(&[0], 2, "0.00");
        check(&[0], -2, "0");
        check(&[0xFF], 1, "-0.1");
    }

    #[test]
    fn integers_of_128_bits_and_their_neighbours_are_exact() {
        for value in
            [0, 1, -1, 127, -128, 255, -256, 999_999_999, 1_000_000_000, i128::from(i64::MIN), i128::MAX, i128::MIN]
        {
            let bytes = value.to_be_bytes();
            check(&bytes, 0, &value.to_string());
            // The shortest form, as Java writes it, and one that is longer than needed.
            let fill = if value < 0 { 0xFF } else { 0 };
            let redundant = |pair: &[u8]| pair[0] == fill && (pair[1] & 0x80 != 0) == (value < 0);
            let short = bytes.windows(2).take_while(|pair| redundant(pair)).count();
            check(&bytes[short..], 0, &value.to_string());
            check(&[&[fill; 5], &bytes[..]].concat(), 0, &value.to_string());
        }
    }

    #[test]
    fn there_is_no_largest_decimal() {
        // 2^128, and -(2^128).
        let mut bytes = vec![0; 17];
        bytes[0] = 1;
        check(&bytes, 0, "340282366920938463463374607431768211456");
        bytes[0] = 0xFF;
        check(&bytes, 3, "-340282366920938463463374607431768211.456");
        // 10^100, whose digits are known.
        let mut power = vec![1_u8];
        for _ in 0..100 {
            let mut carry = 0_u32;
            for byte in power.iter_mut().rev() {
                let value = u32::from(*byte) * 10 + carry;
                *byte = value as u8;
                carry = value >> 8;
            }
            if carry > 0 {
                power.insert(0, carry as u8);
            }
        }
        power.insert(0, 0);
        check(&power, 0, &format!("1{}", "0".repeat(100)));
        check(&power, 100, &format!("1.{}", "0".repeat(100)));
    }

    #[test]
    fn what_is_no_decimal_is_refused() {
        assert_eq!(plain("12.5", 1).unwrap_err(), "\"12.5\" is not the base64 of a decimal");
        assert_eq!(plain("", 1).unwrap_err(), "a decimal has at least one byte, and this has none");
        assert_eq!(plain("AQ==", 1 << 40).unwrap_err(), "a decimal cannot have the scale 1099511627776");
        assert!(plain(&STANDARD.encode(vec![1; BYTES_MAX + 1]), 0).is_err());
    }
}
