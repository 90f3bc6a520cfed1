import { quantile } from './queries.mjs'

/** NATS as routers and steps see it; it works for servers of your own too. */
export const NATS = {
  file: 'nats',
  title: 'Tutti / NATS',
  variables: ['namespace'],
  panels: [
    {
      title: 'Connected',
      unit: 'bool',
      hint: '0 for all of a namespace: its account or the servers. 0 for one pod: its network.',
      queries: [['min by (namespace, pod, broker) (tutti_nats_connected{$in})', '{{pod}} {{broker}}']],
    },
    {
      title: 'Connections made in an hour',
      unit: 'short',
      hint: 'Many: servers restart, or the network loses connections.',
      queries: [['increase(tutti_nats_connects_total{$in}[1h])', '{{pod}} {{broker}}']],
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
  ],
}
