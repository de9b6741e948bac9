//! Times kafka-protocol-rs on the messages of benchmarks/codec.py.
//!
//! A line of stdin is a message: its name, API key, version and bytes in hex. The result is a JSON object with the
//! nanoseconds of decoding and encoding; a message that the library does not have, or writes otherwise, is left out.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable};
use std::hint::black_box;
use std::io::BufRead;
use std::time::Instant;

const ROUNDS: u32 = 15;
const ROUND_NANOS: u128 = 4_000_000;

fn least(mut once: impl FnMut()) -> f64 {
    let mut round = |times: u64| {
        let began = Instant::now();
        for _ in 0..times {
            once();
        }
        began.elapsed().as_nanos()
    };
    let mut times = 1;
    while round(times) < ROUND_NANOS {
        times *= 2;
    }
    let best = (0..ROUNDS).map(|_| round(times)).min().unwrap();
    best as f64 / times as f64
}

fn timed<T: Decodable + Encodable>(data: &Bytes, version: i16) -> Option<(f64, f64)> {
    let message = T::decode(&mut data.clone(), version).ok()?;
    let mut written = BytesMut::new();
    message.encode(&mut written, version).ok()?;
    if written != data {
        return None;
    }
    let decode = least(|| {
        black_box(T::decode(&mut data.clone(), version).unwrap());
    });
    let mut buffer = BytesMut::new();
    let encode = least(|| {
        buffer.clear();
        message.encode(&mut buffer, version).unwrap();
        black_box(&buffer);
    });
    Some((decode, encode))
}

fn main() {
    let mut results = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let (name, version) = (words[0], words[2].parse().unwrap());
        let digits = (0..words[3].len()).step_by(2);
        let data: Bytes = digits.map(|at| u8::from_str_radix(&words[3][at..at + 2], 16).unwrap()).collect();
        let found = match name {
            "BrokerHeartbeatRequest" => timed::<BrokerHeartbeatRequest>(&data, version),
            "BrokerHeartbeatResponse" => timed::<BrokerHeartbeatResponse>(&data, version),
            "BrokerRegistrationRequest" => timed::<BrokerRegistrationRequest>(&data, version),
            "ApiVersionsResponse" => timed::<ApiVersionsResponse>(&data, version),
            "FetchRequest" => timed::<FetchRequest>(&data, version),
            "FetchResponse" => timed::<FetchResponse>(&data, version),
            "MetadataResponse" => timed::<MetadataResponse>(&data, version),
            "AssignReplicasToDirsRequest" => timed::<AssignReplicasToDirsRequest>(&data, version),
            "CreateTopicsRequest" => timed::<CreateTopicsRequest>(&data, version),
            "AlterPartitionRequest" => timed::<AlterPartitionRequest>(&data, version),
            _ => None,
        };
        if let Some((decode, encode)) = found {
            results.push(format!("\"{name}.v{version}\": {{\"decode\": {decode:.1}, \"encode\": {encode:.1}}}"));
        }
    }
    println!("{{{}}}", results.join(", "));
}
