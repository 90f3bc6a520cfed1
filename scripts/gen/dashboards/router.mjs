import { quantile } from './queries.mjs'

const OF = '$in, pod=~"$router"'

/** One router: whether it is ready, whom it reaches and how, and whom it refuses. */
export const ROUTER = {
  file: 'router',
  title: 'Tutti / Router',
  variables: ['namespace', 'router'],
  panels: [
    {
      title: 'Ready',
      unit: 'bool',
      hint: '0: `GET :8002/readyz` of the pod lists the causes.',
      queries: [[`min by (namespace, pod) (tutti_server_ready{${OF}})`, '{{pod}}']],
    },
    {
      title: 'Members that it hears',
      unit: 'short',
      hint: 'All routers of a namespace should hear as many steps. Fewer: a step cannot reach NATS, or is gone.',
      queries: [[`max by (namespace, pod, role) (tutti_members{${OF}})`, '{{pod}} {{role}}']],
    },
    {
      title: 'Requests answered',
      unit: 'reqps',
      hint: 'Of ensembles. One router far above the others: clients keep their connections to it.',
      queries: [[`sum by (namespace, pod) (rate(nv_inference_request_success{${OF}}[5m]))`, '{{pod}}']],
    },
    {
      title: 'Requests that failed',
      unit: 'reqps',
      hint: 'On one router only: compare the members that it hears with those of the others.',
      queries: [[`sum by (namespace, pod) (rate(nv_inference_request_failure{${OF}}[5m]))`, '{{pod}}']],
    },
    {
      title: 'Time of a client\'s request, 99 %',
      unit: 's',
      hint: 'From end to end, answered ones. Of one model only: look at its steps. Of one router only: at the router.',
      queries: [
        [
          quantile(0.99, 'tutti_request_seconds', ['namespace', 'pod', 'model'], `${OF}, code="OK"`),
          '{{pod}} {{model}}',
        ],
      ],
    },
    {
      title: 'Clients\' requests that got an error',
      unit: 'reqps',
      hint: 'UNAVAILABLE and INTERNAL are ours, RESOURCE_EXHAUSTED is a bound, INVALID_ARGUMENT the client\'s. No model: refused before it was known.',
      queries: [
        [
          `sum by (namespace, model, code) (rate(tutti_request_seconds_count{${OF}, code!="OK"}[5m]))`,
          '{{model}} {{code}}',
        ],
      ],
    },
    {
      title: 'Direct connections',
      unit: 'short',
      hint: 'To steps, without NATS between. Connections that stay `opening` do not come about.',
      queries: [[`sum by (namespace, pod, state) (tutti_direct_connections{${OF}})`, '{{pod}} {{state}}']],
    },
    {
      title: 'Direct connections that NATS had to replace',
      unit: 'cps',
      hint: 'connect: no connection or handshake. closed: the other end ended it. broken: it broke.',
      queries: [[`sum by (namespace, pod, reason) (rate(tutti_direct_fallbacks_total{${OF}}[5m]))`, '{{pod}} {{reason}}']],
    },
    {
      title: 'Calls refused',
      unit: 'reqps',
      hint: 'Of clients without access, over their quota, or from foreign pages.',
      queries: [[`sum by (namespace, pod, reason) (rate(tutti_server_refused_calls_total{${OF}}[5m]))`, '{{pod}} {{reason}}']],
    },
  ],
}
