import type { Program } from '@tutti/command-line/program'

/** The plugin that kubectl finds on PATH as `kubectl-tutti`. Each command loads its own modules. */
export const KUBECTL_PROGRAM: Program = {
  name: 'kubectl tutti',
  commands: [
    {
      name: 'status',
      description:
        'Shows Ensembles, their steps and pods as a tree, and why something is not ready.',
      load: async () => (await import('./status/status-command.ts')).statusCommand,
    },
    {
      name: 'explain',
      description:
        'Shows the plan of an Ensemble as routers serve it, and why a later edit is not served.',
      load: async () => (await import('./explain/explain-command.ts')).explainClusterCommand,
    },
    {
      name: 'logs',
      description:
        'Shows the lines of all pods of an Ensemble, a Model or the router by time, or those of one request.',
      load: async () => (await import('./logs/logs-command.ts')).logsCommand,
    },
    {
      name: 'trace',
      description:
        'Sends a request to the router of an Ensemble or Model, and shows where its time went.',
      load: async () => (await import('./trace/trace-command.ts')).traceClusterCommand,
    },
    {
      name: 'restart',
      description: 'Replaces the pods of a Model, of all Models of an Ensemble, or of the router.',
      load: async () => (await import('./restart/restart-command.ts')).restartCommand,
    },
    {
      name: 'doctor',
      description: 'Tells what the cluster lacks for the Models and Ensembles of a namespace.',
      load: async () => (await import('./doctor/doctor-command.ts')).doctorClusterCommand,
    },
  ],
  isOfOthers: async (error) => (await import('./cluster.ts')).isOfCluster(error),
}
