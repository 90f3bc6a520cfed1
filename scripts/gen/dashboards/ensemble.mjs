import { mean, quantile, ratio } from './queries.mjs'

const OF = '$in, model=~"$ensemble"'
/** Requests for a model itself are counted too, as steps of no ensemble. */
const STEPS = '$in, ensemble=~"$ensemble", ensemble!=""'
const LABELS = ['ensemble', 'step']
const NAME = '{{ensemble}} {{step}}'

/** A panel with the 50th and 99th percentiles of a part of the time of steps. */
function partPanel(part, title, hint) {
  const histogram = `tutti_step_${part}_seconds`
  return {
    title,
    unit: 's',
    hint,
    queries: [
      [quantile(0.5, histogram, LABELS, STEPS), `${NAME} 50 %`],
      [quantile(0.99, histogram, LABELS, STEPS), `${NAME} 99 %`],
    ],
  }
}

/** Where the time of an ensemble goes. */
export const ENSEMBLE = {
  file: 'ensemble',
  title: 'Tutti / Ensemble',
  variables: ['namespace', 'ensemble'],
  panels: [
    {
      title: 'Requests answered',
      unit: 'reqps',
      hint: 'By the routers of the namespace together.',
      queries: [[`sum by (model) (rate(nv_inference_request_success{${OF}}[5m]))`, '{{model}}']],
    },
    {
      title: 'Requests that failed',
      unit: 'reqps',
      hint: 'The error of a request names the step; the panels below show which one is late.',
      queries: [[`sum by (model) (rate(nv_inference_request_failure{${OF}}[5m]))`, '{{model}}']],
    },
    {
      title: 'Time of a request, mean',
      unit: 's',
      hint: 'Compare with the sum of the steps on the longest path: the rest is the router.',
      queries: [
        [
          ratio(
            `sum by (model) (rate(nv_inference_request_duration_us{${OF}}[5m]))`,
            `sum by (model) (rate(nv_inference_request_success{${OF}}[5m]))`,
            '/ 1e6',
          ),
          '{{model}}',
        ],
      ],
    },
    {
      title: 'Time of a step request, mean',
      unit: 's',
      hint: 'Queue, transfer and compute of each step: the longest is the one to look at.',
      queries: ['queue', 'transfer', 'compute'].map((part) => [
        mean(`tutti_step_${part}_seconds`, LABELS, STEPS),
        `${NAME} ${part}`,
      ]),
    },
    partPanel('queue', 'Steps: time in the queue', 'Long: the step has too few instances or replicas.'),
    partPanel('transfer', 'Steps: time of the transfer', 'Long: large tensors, NATS or the network. A direct transport may help.'),
    partPanel('compute', 'Steps: time of the computation', 'Long: the model itself, or a processor that is shared.'),
    {
      title: 'Step requests',
      unit: 'reqps',
      hint: 'A step with conditions or retries differs from the others.',
      queries: [[`sum by (ensemble, step) (rate(tutti_step_compute_seconds_count{${STEPS}}[5m]))`, NAME]],
    },
    {
      title: 'Retries',
      unit: 'reqps',
      hint: 'Attempts at a step after one that failed, and failures that its budget made final: then most of its calls fail.',
      queries: [
        [`sum by (ensemble, step) (rate(tutti_step_retries_total{${STEPS}}[5m]))`, `${NAME} retried`],
        [`sum by (ensemble, step) (rate(tutti_step_retries_refused_total{${STEPS}}[5m]))`, `${NAME} refused`],
      ],
    },
    {
      title: 'Skips',
      unit: 'reqps',
      hint: 'Step requests that did not run: their condition did not hold, or an input was absent because of another one.',
      queries: [[`sum by (ensemble, step) (rate(tutti_step_skips_total{${STEPS}}[5m]))`, NAME]],
    },
    {
      title: 'Items',
      unit: 'ops',
      hint: 'Items and iterations in a second. Items a call are the mean batch; those that fail have an error or a default.',
      queries: [
        [`sum by (ensemble, step) (rate(tutti_step_items_total{${STEPS}}[5m]))`, `${NAME} items`],
        [`sum by (ensemble, step) (rate(tutti_step_item_calls_total{${STEPS}}[5m]))`, `${NAME} calls`],
        [`sum by (ensemble, step) (rate(tutti_step_failed_items_total{${STEPS}}[5m]))`, `${NAME} failed`],
        [`sum by (ensemble, step) (rate(tutti_step_iterations_total{${STEPS}}[5m]))`, `${NAME} iterations`],
      ],
    },
    {
      title: 'Timeouts',
      unit: 'reqps',
      hint: 'Step requests that took longer than the timeout of their step. A replica hangs, or the timeout is too short.',
      queries: [[`sum by (ensemble, step) (rate(tutti_step_timeouts_total{${STEPS}}[5m]))`, NAME]],
    },
    {
      title: 'Fallbacks',
      unit: 'reqps',
      hint: 'Step requests that failed and went to the fallback of their step, or got its defaults. The step itself is broken or too slow.',
      queries: [
        [`sum by (ensemble, step) (rate(tutti_step_fallbacks_total{${STEPS}}[5m]))`, `${NAME} fallback`],
        [`sum by (ensemble, step) (rate(tutti_step_defaults_total{${STEPS}}[5m]))`, `${NAME} default`],
      ],
    },
    {
      title: 'Hedges',
      unit: 'reqps',
      hint: 'Step requests that went to a second replica, and those that it answered first. Only where an Ensemble asks for it.',
      queries: [
        [`sum by (ensemble, step) (rate(tutti_step_hedges_total{${STEPS}}[5m]))`, `${NAME} sent`],
        [`sum by (ensemble, step) (rate(tutti_step_hedges_won_total{${STEPS}}[5m]))`, `${NAME} won`],
      ],
    },
  ],
}
