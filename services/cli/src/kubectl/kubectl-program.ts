import type { Program } from '../run-program.ts'
import { isOfCluster } from './cluster.ts'
import { doctorClusterCommand } from './doctor/doctor-command.ts'
import { explainClusterCommand } from './explain/explain-command.ts'
import { logsCommand } from './logs/logs-command.ts'
import { restartCommand } from './restart/restart-command.ts'
import { statusCommand } from './status/status-command.ts'
import { traceClusterCommand } from './trace/trace-command.ts'

/** The plugin that kubectl finds on PATH as `kubectl-tutti`. */
export const KUBECTL_PROGRAM: Program = {
  name: 'kubectl tutti',
  commands: [
    statusCommand,
    explainClusterCommand,
    logsCommand,
    traceClusterCommand,
    restartCommand,
    doctorClusterCommand,
  ],
  isOfOthers: isOfCluster,
}
