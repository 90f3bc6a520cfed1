import { quantile } from './queries.mjs'

const OF = 'job=~"$job"'

const rate = (metric, by) => `sum by (${by}) (rate(${metric}{${OF}}[5m]))`

/** Whether the operator keeps up, and what holds it up. */
export const OPERATOR = {
  file: 'operator',
  title: 'Tutti / Operator',
  variables: ['job'],
  panels: [
    {
      title: 'Leaders',
      unit: 'short',
      hint: '1. With 0, changes of resources have no effect; requests are answered all the same.',
      queries: [[`sum by (job) (leader_election_master_status{${OF}})`, '{{job}}']],
    },
    {
      title: 'Models by their condition Ready',
      unit: 'short',
      hint: '`kubectl get models -A` names those that are not True, with the reason.',
      queries: [[`max by (ready) (tutti_operator_models{${OF}})`, '{{ready}}']],
    },
    {
      title: 'Reconciles, by result',
      unit: 'ops',
      hint: 'At rest there are few. Many without a change: two controllers disagree on an object.',
      queries: [[rate('controller_runtime_reconcile_total', 'controller, result'), '{{controller}} {{result}}']],
    },
    {
      title: 'Reconciles that failed',
      unit: 'ops',
      hint: 'Lines of level error in the log say why. The alert TuttiReconcilesFail watches 0.1 a second.',
      queries: [[rate('controller_runtime_reconcile_errors_total', 'controller'), '{{controller}}']],
    },
    {
      title: 'Time of a reconcile, 99 %',
      unit: 's',
      hint: 'Long: the API server is slow, or pods do not answer.',
      queries: [[quantile(0.99, 'controller_runtime_reconcile_time_seconds', ['controller'], OF), '{{controller}}']],
    },
    {
      title: 'Keys that wait',
      unit: 'short',
      hint: 'The alert TuttiQueueGrows watches 100.',
      queries: [[`max by (name) (workqueue_depth{${OF}})`, '{{name}}']],
    },
    {
      title: 'Time that a key waits, 99 %',
      unit: 's',
      hint: 'Time from a change to the beginning of its reconcile.',
      queries: [[quantile(0.99, 'workqueue_queue_duration_seconds', ['name'], OF), '{{name}}']],
    },
    {
      title: 'Requests to the API server, by answer',
      unit: 'reqps',
      hint: '409: others write the same objects. 429: the API server asks for patience. 403: a right is missing.',
      queries: [[rate('rest_client_requests_total', 'method, code'), '{{method}} {{code}}']],
    },
    {
      title: 'Time of a request to the API server, 99 %',
      unit: 's',
      hint: 'Rises with the load of the API server.',
      queries: [[quantile(0.99, 'rest_client_request_duration_seconds', ['verb'], OF), '{{verb}}']],
    },
    {
      title: 'Objects held',
      unit: 'short',
      hint: 'Memory grows with them.',
      queries: [[`max by (resource) (cache_objects{${OF}})`, '{{resource}}']],
    },
    {
      title: 'Watches that failed',
      unit: 'ops',
      hint: 'Above 0 for long: the operator does not hear of changes.',
      queries: [[rate('reflector_watch_errors_total', 'resource'), '{{resource}}']],
    },
    {
      title: 'Delay of the event loop, 99 %',
      unit: 's',
      hint: 'Above 0.1 s: the operator wants more processor.',
      queries: [[`max by (pod) (event_loop_delay_p99_seconds{${OF}})`, '{{pod}}']],
    },
  ],
}
