//! The private operation on GPUs. Keys with two primes, of the sizes that there are kernels for, never leave
//! the device between the representative and the result; all others go by way of the host.

use alloc::vec::Vec;

use crypto_bigint::BoxedUint;
use rayon::prelude::*;

use super::RsaPrivateOp;
use super::blinding::Blinding;
use super::group::{Group, KeyClass, Values, crt, in_groups};
use super::op::{Candidates, PrivateOp};
use super::{HostThreads, host};
use crate::Error;
use crate::backend::Cuda;
use crate::backend::cuda::{Class, RsaGroup, RsaKey, RsaLane};
use crate::secret::Secret;

/// Without blinding the device does everything. With blinding the host multiplies by the blinding factors
/// before and divides by them after, on all threads.
impl RsaPrivateOp for Cuda {
    fn private_op(&self, batch: &[PrivateOp<'_>]) -> Candidates {
        in_groups(batch, |group| match device_class(self, group.class) {
            None => host::private_op(self, &group.ops),
            Some(class) if group.is_blinded => blinded(self, group, class),
            Some(class) => {
                let representatives = group.ops.iter().map(|op| op.representative);
                let lanes = self.rsa_private_op(&device_group(group, representatives, class))?;
                Ok(lanes
                    .into_iter()
                    .map(|lane| lane.ok_or(Error::Fault))
                    .collect())
            }
        })
    }

    fn check_threads(&self) -> HostThreads<'_> {
        HostThreads::of(self.pool())
    }
}

/// The kernels for keys of a class; `None` for keys without CRT values, for long public exponents, and for
/// widths that there are none for.
fn device_class(cuda: &Cuda, class: KeyClass) -> Option<Class> {
    let prime = class.prime.filter(|_| class.e_bits <= u64::BITS)?;
    cuda.rsa_class(class.n_width, prime.width)
}

/// The group as the backend takes it, with `representatives` in place of the lanes' own.
fn device_group<'a>(
    group: &Group<'a>,
    representatives: impl Iterator<Item = &'a BoxedUint>,
    class: Class,
) -> RsaGroup<'a> {
    let lane = |(op, block): (&PrivateOp<'a>, &'a BoxedUint)| {
        let (parts, crt) = (op.key.parts(), crt(op));
        let key = RsaKey {
            p: crt.p(),
            dp: &crt.dp,
            q: crt.q(),
            dq: &crt.dq,
            qinv: &crt.qinv,
            n: parts.n.as_ref(),
            places: &parts.on_devices,
        };
        RsaLane { key, block }
    };
    let (prime_bits, exponent_bits) = match group.class.prime {
        Some(prime) => (prime.width, prime.bits),
        None => unreachable!("the class has kernels"),
    };
    RsaGroup {
        class,
        n_bits: group.class.n_width,
        prime_bits,
        exponent_bits,
        public_exponent: group.class.e_low,
        lanes: group.ops.iter().zip(representatives).map(lane).collect(),
    }
}

/// The private operation with blinding.
fn blinded(cuda: &Cuda, group: &Group<'_>, class: Class) -> Candidates {
    let (pool, ops) = (cuda.pool(), &group.ops);
    let share = ops.len().div_ceil(4 * pool.current_num_threads()).max(1);
    let powers = group.public_power(cuda, group.blinds())?;

    // Each thread takes its share of the lanes: it inverts the random numbers and blinds the representatives.
    type Share = Result<(Blinding, Values), Error>;
    let prepare = |(ops, powers): (&[PrivateOp<'_>], &[BoxedUint])| -> Share {
        let blinding = Blinding::new(ops, Secret::new(powers.to_vec()))?;
        let copies = ops.iter().map(|op| op.representative.clone());
        let mut representatives: Values = Secret::new(copies.collect());
        blinding.blind(ops, &mut representatives);
        Ok((blinding, representatives))
    };
    let shares = || ops.par_chunks(share).zip(powers.par_chunks(share));
    let prepared: Vec<_> = pool.install(|| shares().map(prepare).collect::<Result<_, _>>())?;

    let representatives = prepared.iter().flat_map(|(_, blinded)| blinded.iter());
    let lanes = cuda.rsa_private_op(&device_group(group, representatives, class))?;
    let passed: Vec<_> = lanes.iter().map(Option::is_some).collect();
    // A lane that did not pass has a zero from here on.
    let zero = || Secret::new(BoxedUint::zero_with_precision(group.class.n_width));
    let values = lanes
        .into_par_iter()
        .map(|lane| lane.unwrap_or_else(zero).clone());
    let mut values: Values = Secret::new(pool.install(|| values.collect()));
    pool.install(|| {
        let shares = ops.par_chunks(share).zip(values.par_chunks_mut(share));
        shares
            .zip(&prepared)
            .for_each(|((ops, values), (blinding, _))| blinding.unblind(ops, values));
    });
    let values = values.drain(..).map(Secret::new).zip(passed);
    Ok(values
        .map(|(value, passed)| passed.then_some(value).ok_or(Error::Fault))
        .collect())
}

#[cfg(test)]
mod tests;
