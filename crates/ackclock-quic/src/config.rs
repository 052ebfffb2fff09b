//! The stack's configuration, from a plan.

use std::sync::Arc;
use std::time::SystemTime;

use ackclock_plan::{QuicCongestion, QuicPlan, StackCongestion};
use noq_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use noq_proto::{
    AckFrequencyConfig, ClientConfig, Endpoint, EndpointConfig, MtuDiscoveryConfig, ServerConfig,
    TimeSource, TransportConfig, VarInt,
};

use crate::controller::{ObservedFactory, Observer};
use crate::crypto::{Client, ResetKey, Server, TokenKey};
use crate::engine_controller::{ControllerError, EngineController};
use crate::log::Log;
use crate::seeds::{ConnectionIds, Seeds};

/// A date that does not change: only tokens have one, and none is sent.
struct NoDate;

impl TimeSource for NoDate {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// A client's endpoint and the configuration of its connection, which is logged if there is a log.
///
/// # Errors
/// The plan's congestion control cannot work in the stack.
pub fn client(
    plan: &QuicPlan,
    seeds: &mut Seeds,
    observer: &Observer,
    log: Option<&Log>,
) -> Result<(Endpoint, ClientConfig), ControllerError> {
    let endpoint = Endpoint::new(endpoint(plan, seeds), None, true);
    let mut config = ClientConfig::new(Arc::new(Client));
    let connection_id = seeds.connection_id();
    config.initial_dst_cid_provider(Arc::new(move || connection_id));
    let mut transport = transport(plan, seeds, observer)?;
    if let Some(log) = log {
        transport.qlog_factory(Arc::new(log.clone()));
    }
    config.transport_config(Arc::new(transport));
    Ok((endpoint, config))
}

/// A server's endpoint.
///
/// # Errors
/// The plan's congestion control cannot work in the stack.
pub fn server(
    plan: &QuicPlan,
    seeds: &mut Seeds,
    observer: &Observer,
) -> Result<Endpoint, ControllerError> {
    let certificate_chain_bytes = plan.certificate_chain_bytes as usize;
    let crypto = Server {
        certificate_chain_bytes,
    };
    let mut config = ServerConfig::new(Arc::new(crypto), Arc::new(TokenKey));
    let endpoint = endpoint(plan, seeds);
    config.transport_config(Arc::new(transport(plan, seeds, observer)?));
    config.time_source(Arc::new(NoDate));
    Ok(Endpoint::new(endpoint, Some(Arc::new(config)), true))
}

fn endpoint(plan: &QuicPlan, seeds: &mut Seeds) -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::new(Arc::new(ResetKey));
    let seed = seeds.seed();
    config.cid_generator(Arc::new(move || Box::new(ConnectionIds(Seeds::new(seed)))));
    config.rng_seed(Some(seeds.stack_seed()));
    // The plan's bounds are those of the setter.
    let _ = config.max_udp_payload_size(plan.max_payload_bytes());
    Arc::new(config)
}

fn transport(
    plan: &QuicPlan,
    seeds: &mut Seeds,
    observer: &Observer,
) -> Result<TransportConfig, ControllerError> {
    let mut config = TransportConfig::default();
    config.congestion_controller_factory(Arc::new(ObservedFactory::new(
        controllers(plan, seeds)?,
        observer.clone(),
    )));
    config.mtu_discovery_config(plan.discovery_limit_bytes.map(|limit| {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(limit);
        discovery
    }));
    config.ack_frequency_config(plan.ack_eliciting_threshold.map(|threshold| {
        let mut frequency = AckFrequencyConfig::default();
        frequency.ack_eliciting_threshold(VarInt::from_u32(threshold));
        frequency
    }));
    config.stream_receive_window(number(plan.receive_window_bytes));
    config.send_window(plan.send_window_bytes);
    Ok(config)
}

/// Maker of the connections' controllers. A controller of the engine draws its seed from those of the endpoint.
fn controllers(
    plan: &QuicPlan,
    seeds: &mut Seeds,
) -> Result<Arc<dyn ControllerFactory + Send + Sync>, ControllerError> {
    let window = plan.initial_window_bytes;
    Ok(match &plan.congestion {
        QuicCongestion::Engine(congestion) => {
            let segment = plan.max_payload_bytes();
            let seed = seeds.seed();
            Arc::new(EngineController::new(congestion, segment, window, seed)?)
        }
        QuicCongestion::Stack(StackCongestion::Reno) => {
            let mut config = NewRenoConfig::default();
            config.initial_window(window);
            Arc::new(config)
        }
        QuicCongestion::Stack(StackCongestion::Cubic) => {
            let mut config = CubicConfig::default();
            config.initial_window(window);
            Arc::new(config)
        }
    })
}

/// A number in QUIC; [`QuicPlan::fault`] bounds it.
fn number(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}
