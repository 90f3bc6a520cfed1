import { runExecutable } from '@tutti/chassis'
import { routerExecutable } from '@tutti/router'
import { FETCH_FLAGS, FETCH_USAGE, FetchResult, runFetch, stepExecutable } from '@tutti/step'
import { benchCommand } from './bench/bench-command.ts'
import type { Command } from './command.ts'
import { completionCommand } from './completion/completion-command.ts'
import { configCommand } from './config/config-command.ts'
import { doctorCommand } from './doctor/doctor-command.ts'
import { explainCommand } from './explain/explain-command.ts'
import { importCommand } from './import/import-command.ts'
import { inferCommand } from './infer/infer-command.ts'
import { serveCommand } from './serve/serve-command.ts'
import { topCommand } from './top/top-command.ts'
import { traceCommand } from './trace/trace-command.ts'
import { validateCommand } from './validate/validate-command.ts'

/** Of `tutti`. One that prints results has their schema as its `result`. */
export const COMMANDS: readonly Command[] = [
  serveCommand,
  configCommand,
  inferCommand,
  traceCommand,
  benchCommand,
  topCommand,
  validateCommand,
  explainCommand,
  importCommand,
  doctorCommand,
  {
    name: 'step',
    description: 'Serves models as a microservice, to routers over NATS and to clients.',
    usage: stepExecutable.usage,
    flags: stepExecutable.flags,
    run: (argv, environment) => runExecutable(stepExecutable, argv, environment),
  },
  {
    name: 'router',
    description: 'Serves ensembles over the steps of a NATS server.',
    usage: routerExecutable.usage,
    flags: routerExecutable.flags,
    run: (argv, environment) => runExecutable(routerExecutable, argv, environment),
  },
  {
    name: 'fetch',
    description: 'Fetches a model from where it is stored, or checks its digest.',
    usage: FETCH_USAGE,
    flags: FETCH_FLAGS,
    result: FetchResult,
    run: (argv, environment) => runFetch('tutti fetch', argv, environment),
  },
  completionCommand(() => COMMANDS),
]
