import { quantile } from './queries.mjs'

const SERVER = 'tutti_nats_server'

/** NATS as routers and steps see it, which works for servers of your own too, and what the chart's servers say of themselves. */
export const NATS = {
  file: 'nats',
  title: 'Tutti / NATS',
  variables: ['namespace'],
  panels: [
    {
      title: 'Connected',
      unit: 'bool',
      hint: '0 for all of a namespace: its account or the servers. 0 for one pod: its network.',
      queries: [['min by (namespace, pod) (tutti_nats_connected{$in})', '{{pod}}']],
    },
    {
      title: 'Connections made in an hour',
      unit: 'short',
      hint: 'Many: servers restart, or the network loses connections.',
      queries: [['increase(tutti_nats_connects_total{$in}[1h])', '{{pod}}']],
    },
    {
      title: 'Bytes sent',
      unit: 'Bps',
      hint: 'control: calls, small tensors and heartbeats. data: large tensors; none with a direct transport.',
      queries: [
        ['sum by (namespace, pod, connection) (rate(tutti_nats_sent_bytes_total{$in}[5m]))', '{{pod}} {{connection}}'],
      ],
    },
    {
      title: 'Time of transfers between routers and steps',
      unit: 's',
      hint: 'It rises with the load of NATS where tensors go over it.',
      queries: [
        [quantile(0.5, 'tutti_step_transfer_seconds', ['namespace'], '$in'), '{{namespace}} 50 %'],
        [quantile(0.99, 'tutti_step_transfer_seconds', ['namespace'], '$in'), '{{namespace}} 99 %'],
      ],
    },
    {
      title: 'Members that each process hears',
      unit: 'short',
      hint: 'Processes of one namespace hear the same numbers; one that hears fewer is cut off.',
      queries: [['max by (namespace, pod, role) (tutti_members{$in})', '{{pod}} {{role}}']],
    },
    {
      title: 'Members of another protocol',
      unit: 'short',
      hint: 'Above 0: pods of a release that shares no version of the protocol. Nothing calls them.',
      queries: [['max by (namespace, pod) (tutti_foreign_members{$in})', '{{pod}}']],
    },
    {
      title: 'Servers: memory',
      unit: 'bytes',
      hint: 'Of the chart’s servers. Near the limit (GOMEMLIMIT) a server frees more often; above it clients do not read what it holds for them.',
      queries: [
        [`max by (server) (${SERVER}_memory_bytes)`, '{{server}}'],
        [`max by (server) (${SERVER}_memory_limit_bytes)`, '{{server}} limit'],
      ],
    },
    {
      title: 'Servers: connections',
      unit: 'short',
      hint: 'Two of each router and step. Servers of a cluster share them.',
      queries: [[`max by (server) (${SERVER}_connections)`, '{{server}}']],
    },
    {
      title: 'Servers: bytes of messages',
      unit: 'Bps',
      hint: 'Sent above received: heartbeats, which several processes hear.',
      queries: [
        [`sum by (server) (rate(${SERVER}_received_bytes_total[5m]))`, '{{server}} received'],
        [`sum by (server) (rate(${SERVER}_sent_bytes_total[5m]))`, '{{server}} sent'],
      ],
    },
    {
      title: 'Servers: connections ended as too slow, in an hour',
      unit: 'short',
      hint: 'Processes that did not read what was sent to them: too little processor or memory. The alert is TuttiNatsSlowConsumers.',
      queries: [[`sum by (server) (increase(${SERVER}_slow_consumers_total[1h]))`, '{{server}}']],
    },
  ],
}
