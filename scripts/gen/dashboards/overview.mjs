import { ratio } from './queries.mjs'

/** The first one to look at: whether all is well, and which model or namespace is not. */
export const OVERVIEW = {
  file: 'tutti',
  title: 'Tutti',
  variables: ['namespace'],
  panels: [
    {
      title: 'Processes that are not ready',
      unit: 'short',
      hint: 'Above 0 for longer than a roll-out: `GET :8002/readyz` of the pod says why.',
      queries: [
        ['count by (namespace) (tutti_server_ready{$in} == 0) or 0 * sum by (namespace) (tutti_server_ready{$in})', '{{namespace}}'],
      ],
    },
    {
      title: 'Models by their condition Ready',
      unit: 'short',
      hint: 'Of the whole installation. `kubectl get models -A` names those that are not True.',
      queries: [['max by (ready) (tutti_operator_models)', '{{ready}}']],
    },
    {
      title: 'Requests answered',
      unit: 'reqps',
      hint: 'Of models and ensembles. A line that falls to 0 while others go on: the model is not reached.',
      queries: [['sum by (namespace, model) (rate(nv_inference_request_success{$in}[5m]))', '{{namespace}} {{model}}']],
    },
    {
      title: 'Requests that failed',
      unit: 'reqps',
      hint: 'REJECTED: a queue is full or a request waited too long. CANCELED: the client left. BACKEND: the model failed.',
      queries: [
        ['sum by (namespace, model, reason) (rate(nv_inference_request_failure{$in}[5m]))', '{{namespace}} {{model}} {{reason}}'],
      ],
    },
    {
      title: 'Part of the requests that fail',
      unit: 'percentunit',
      hint: 'The alert TuttiModelFails watches 5 %.',
      queries: [
        [
          ratio(
            'sum by (namespace) (rate(nv_inference_request_failure{$in}[5m]))',
            '(sum by (namespace) (rate(nv_inference_request_success{$in}[5m])) + sum by (namespace) (rate(nv_inference_request_failure{$in}[5m])))',
          ),
          '{{namespace}}',
        ],
      ],
    },
    {
      title: 'Time of a request, mean',
      unit: 's',
      hint: 'From its arrival at the router (ensembles) or at the step (models) to its answer.',
      queries: [
        [
          ratio(
            'sum by (namespace, model) (rate(nv_inference_request_duration_us{$in}[5m]))',
            'sum by (namespace, model) (rate(nv_inference_request_success{$in}[5m]))',
            '/ 1e6',
          ),
          '{{namespace}} {{model}}',
        ],
      ],
    },
    {
      title: 'Requests that wait',
      unit: 'short',
      hint: 'Grows without end: the model gets more than its instances can do. Add replicas or instances.',
      queries: [['sum by (namespace, model) (nv_inference_pending_request_count{$in})', '{{namespace}} {{model}}']],
    },
    {
      title: 'Processes without NATS',
      unit: 'short',
      hint: 'Above 0: see the dashboard Tutti / NATS.',
      queries: [
        ['count by (namespace) (tutti_nats_connected{$in} == 0) or 0 * sum by (namespace) (tutti_nats_connected{$in})', '{{namespace}}'],
      ],
    },
  ],
}
