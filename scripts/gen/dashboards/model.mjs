import { ratio } from './queries.mjs'

const OF = '$in, model=~"$model"'
const BY = 'namespace, model'
const NAME = '{{namespace}} {{model}}'

const rate = (metric, by = BY) => `sum by (${by}) (rate(${metric}{${OF}}[5m]))`

/** Mean microseconds of a part of an inference, as seconds. */
function meanOf(part, count) {
  return ratio(rate(`nv_inference_${part}_duration_us`), rate(count), '/ 1e6')
}

/** One model: how much it gets, where its time goes, and whether its instances are enough. */
export const MODEL = {
  file: 'model',
  title: 'Tutti / Model',
  variables: ['namespace', 'model'],
  panels: [
    {
      title: 'Requests answered, by pod',
      unit: 'reqps',
      hint: 'A pod without requests is not ready, or has just come.',
      queries: [[rate('nv_inference_request_success', 'namespace, pod, model'), '{{pod}} {{model}}']],
    },
    {
      title: 'Requests that failed, by reason',
      unit: 'reqps',
      hint: 'BACKEND: look at the log of the pod. REJECTED: see requests that wait.',
      queries: [[rate('nv_inference_request_failure', `${BY}, reason`), `${NAME} {{reason}}`]],
    },
    {
      title: 'Requests that wait',
      unit: 'short',
      hint: 'Near `max_queue_size`, further ones are refused.',
      queries: [[`sum by (namespace, pod, model) (nv_inference_pending_request_count{${OF}})`, '{{pod}} {{model}}']],
    },
    {
      title: 'Where the time of a request goes, mean',
      unit: 's',
      hint: 'queue: too few instances. input and output: large tensors. infer: the model itself.',
      queries: [
        [meanOf('queue', 'nv_inference_request_success'), `${NAME} queue`],
        [meanOf('compute_input', 'nv_inference_request_success'), `${NAME} input`],
        [meanOf('compute_infer', 'nv_inference_request_success'), `${NAME} infer`],
        [meanOf('compute_output', 'nv_inference_request_success'), `${NAME} output`],
      ],
    },
    {
      title: 'Batch, mean',
      unit: 'short',
      hint: 'Inferences in one execution. 1 with a dynamic batcher: too few requests at once, or they do not fit together.',
      queries: [[ratio(rate('nv_inference_count'), rate('nv_inference_exec_count')), NAME]],
    },
    {
      title: 'Executions at the same time, mean',
      unit: 'short',
      hint: 'Near the number of instances of all pods together: they are busy. Add instances or replicas.',
      queries: [[`${rate('nv_inference_compute_infer_duration_us')} / 1e6`, NAME]],
    },
    {
      title: 'Inferences',
      unit: 'cps',
      hint: 'Elements of batches, not requests.',
      queries: [[rate('nv_inference_count'), NAME]],
    },
    {
      title: 'Time of the load',
      unit: 's',
      hint: 'Of the version that is served, by pod. A new replica takes as long before it serves.',
      queries: [[`max by (namespace, pod, model) (nv_model_load_duration_secs{${OF}})`, '{{pod}} {{model}}']],
    },
  ],
}
