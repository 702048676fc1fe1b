//! The bytes by which rows are compared: all that serde is told of a row, so that equal bytes mean equal rows.
//!
//! Every value says what it is before it says which, and whatever can have parts says where they end. Hence it is told
//! apart what the type alone leaves open: what stands in an untagged enum, how long a list is. Fields have their names,
//! since one may be left out, and two forms of one type may differ in nothing else. The entries of a map are put in the
//! order of their bytes, as the map itself may have none. Nothing is ever read back from these bytes.

use std::fmt;

use serde::ser::{self, Serialize, Serializer};

/// Takes bytes.
pub trait Out {
    /// Takes a few bytes, whose number is known when this is compiled.
    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> Result<(), Stop>;

    /// Takes any number of bytes.
    fn put_all(&mut self, bytes: &[u8]) -> Result<(), Stop>;
}

impl Out for Vec<u8> {
    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> Result<(), Stop> {
        self.extend_from_slice(&bytes);
        Ok(())
    }

    #[inline]
    fn put_all(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// Why a row is not written to its end.
#[derive(Debug)]
pub struct Stop(Option<Box<String>>);

impl Stop {
    /// What it is compared with has other bytes.
    pub const DIFFERS: Stop = Stop(None);

    /// Its own `Serialize` refuses, for this reason.
    pub fn refusal(self) -> Option<String> {
        self.0.map(|reason| *reason)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().map_or("the rows differ", |reason| reason))
    }
}

impl std::error::Error for Stop {}

impl ser::Error for Stop {
    fn custom<M: fmt::Display>(message: M) -> Stop {
        Stop(Some(Box::new(message.to_string())))
    }
}

/// Writes one value.
pub struct Encoder<'a, O>(pub &'a mut O);

/// Writes the parts of a value, up to its end.
pub struct Parts<'a, O>(&'a mut O);

/// Gathers the entries of a map, and writes them when all are there.
pub struct Entries<'a, O> {
    out: &'a mut O,
    bytes: Vec<u8>,
    // Where each entry begins.
    begins: Vec<usize>,
}

impl<'a, O: Out> Encoder<'a, O> {
    #[inline]
    fn name(&mut self, name: &'static str) -> Result<(), Stop> {
        self.0.put_all(name.as_bytes())?;
        self.0.put([END_OF_NAME])
    }

    #[inline]
    fn text(self, tag: u8, text: &[u8]) -> Result<(), Stop> {
        let mut head = [tag; 9];
        head[1..].copy_from_slice(&(text.len() as u64).to_le_bytes());
        self.0.put(head)?;
        self.0.put_all(text)
    }

    #[inline]
    fn parts(self, tag: u8) -> Result<Parts<'a, O>, Stop> {
        self.0.put([tag])?;
        Ok(Parts(self.0))
    }

    #[inline]
    fn variant(&mut self, tag: u8, index: u32, name: &'static str) -> Result<(), Stop> {
        let [a, b, c, d] = index.to_le_bytes();
        self.0.put([tag, a, b, c, d])?;
        self.name(name)
    }
}

// A number is its tag and its bytes.
macro_rules! numbers {
    ($($method:ident $number:ty: $tag:expr;)*) => {$(
        #[inline]
        fn $method(self, value: $number) -> Result<(), Stop> {
            let mut bytes = [$tag; 1 + size_of::<$number>()];
            bytes[1..].copy_from_slice(&value.to_le_bytes());
            self.0.put(bytes)
        }
    )*};
}

impl<'a, O: Out> Serializer for Encoder<'a, O> {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = Parts<'a, O>;
    type SerializeTuple = Parts<'a, O>;
    type SerializeTupleStruct = Parts<'a, O>;
    type SerializeTupleVariant = Parts<'a, O>;
    type SerializeMap = Entries<'a, O>;
    type SerializeStruct = Parts<'a, O>;
    type SerializeStructVariant = Parts<'a, O>;

    numbers! {
        serialize_i8 i8: 2;
        serialize_i16 i16: 3;
        serialize_i32 i32: 4;
        serialize_i64 i64: 5;
        serialize_i128 i128: 6;
        serialize_u8 u8: 7;
        serialize_u16 u16: 8;
        serialize_u32 u32: 9;
        serialize_u64 u64: 10;
        serialize_u128 u128: 11;
        serialize_f32 f32: 12;
        serialize_f64 f64: 13;
    }

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<(), Stop> {
        self.0.put([u8::from(value)])
    }

    #[inline]
    fn serialize_char(self, value: char) -> Result<(), Stop> {
        let [a, b, c, d] = u32::from(value).to_le_bytes();
        self.0.put([14, a, b, c, d])
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), Stop> {
        self.text(15, value.as_bytes())
    }

    #[inline]
    fn serialize_bytes(self, value: &[u8]) -> Result<(), Stop> {
        self.text(16, value)
    }

    #[inline]
    fn serialize_none(self) -> Result<(), Stop> {
        self.0.put([17])
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Stop> {
        self.0.put([18])?;
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), Stop> {
        self.0.put([19])
    }

    #[inline]
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Stop> {
        self.0.put([20])
    }

    #[inline]
    fn serialize_unit_variant(mut self, _: &'static str, index: u32, name: &'static str) -> Result<(), Stop> {
        self.variant(21, index, name)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Stop> {
        self.0.put([22])?;
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        index: u32,
        name: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        self.variant(23, index, name)?;
        value.serialize(self)
    }

    #[inline]
    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Stop> {
        self.parts(24)
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Stop> {
        self.parts(25)
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Stop> {
        self.parts(26)
    }

    #[inline]
    fn serialize_tuple_variant(
        mut self,
        _: &'static str,
        index: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Stop> {
        self.variant(27, index, name)?;
        Ok(Parts(self.0))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Stop> {
        self.0.put([28])?;
        Ok(Entries { out: self.0, bytes: Vec::new(), begins: Vec::new() })
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Stop> {
        self.parts(29)
    }

    #[inline]
    fn serialize_struct_variant(
        mut self,
        _: &'static str,
        index: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Stop> {
        self.variant(30, index, name)?;
        Ok(Parts(self.0))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

impl<O: Out> Parts<'_, O> {
    #[inline]
    fn part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        value.serialize(Encoder(&mut *self.0))
    }

    #[inline]
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Stop> {
        Encoder(&mut *self.0).name(name)?;
        self.part(value)
    }

    #[inline]
    fn finish(self) -> Result<(), Stop> {
        self.0.put([END])
    }
}

macro_rules! parts {
    ($($kind:ident $method:ident;)*) => {$(
        impl<O: Out> ser::$kind for Parts<'_, O> {
            type Ok = ();
            type Error = Stop;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
                self.part(value)
            }

            #[inline]
            fn end(self) -> Result<(), Stop> {
                self.finish()
            }
        }
    )*};
}
parts! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! fields {
    ($($kind:ident)*) => {$(
        impl<O: Out> ser::$kind for Parts<'_, O> {
            type Ok = ();
            type Error = Stop;

            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Stop> {
                self.field(name, value)
            }

            #[inline]
            fn end(self) -> Result<(), Stop> {
                self.finish()
            }
        }
    )*};
}
fields!(SerializeStruct SerializeStructVariant);

impl<O: Out> ser::SerializeMap for Entries<'_, O> {
    type Ok = ();
    type Error = Stop;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Stop> {
        self.begins.push(self.bytes.len());
        key.serialize(Encoder(&mut self.bytes))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        value.serialize(Encoder(&mut self.bytes))
    }

    fn end(self) -> Result<(), Stop> {
        let Entries { out, bytes, begins } = self;
        let ends = begins.iter().skip(1).copied().chain([bytes.len()]);
        let mut entries: Vec<&[u8]> = begins.iter().zip(ends).map(|(&begin, end)| &bytes[begin..end]).collect();
        // A key says where it ends, so this is the order of the keys.
        entries.sort_unstable();
        entries.into_iter().try_for_each(|entry| out.put_all(entry))?;
        out.put([END])
    }
}

// None of these is a byte of a name, and none a tag.
const END: u8 = 0xFD;
const END_OF_NAME: u8 = 0xFF;
