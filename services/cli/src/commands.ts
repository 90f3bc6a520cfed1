import type { Executable, FlagTable } from '@tutti/chassis'
import { type CommandBody, type CommandEntry, loadCommands } from '@tutti/command-line/program'

/** The commands of `tutti`. Each loads its own modules: all together take a second of processor time. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'serve',
    description: 'Serves model repositories, or manifests, in one process.',
    load: async () => (await import('./serve/serve-command.ts')).serveCommand,
  },
  {
    name: 'config',
    description: 'Prints the configuration with which a model would be served.',
    load: async () => (await import('./config/config-command.ts')).configCommand,
  },
  {
    name: 'infer',
    description: 'Sends a request to a model of a running server, and shows or stores the answer.',
    load: async () => (await import('./infer/infer-command.ts')).inferCommand,
  },
  {
    name: 'trace',
    description: 'Sends a request to a model of a running server, and shows where its time went.',
    load: async () => (await import('./trace/trace-command.ts')).traceCommand,
  },
  {
    name: 'bench',
    description: 'Puts a model of running servers under load, and shows latencies and throughput.',
    load: async () => (await import('./bench/bench-command.ts')).benchCommand,
  },
  {
    name: 'top',
    description: 'Shows what the models of a running server do now: requests, failures, latencies.',
    load: async () => (await import('./top/top-command.ts')).topCommand,
  },
  {
    name: 'validate',
    description:
      'Checks manifests of Models and Ensembles as the operator does, or a model repository as a server does; loads nothing.',
    load: async () => (await import('./validate/validate-command.ts')).validateCommand,
  },
  {
    name: 'explain',
    description:
      'Shows the plan of an ensemble: its steps in order, their tensors, and what executes.',
    load: async () => (await import('./explain/explain-command.ts')).explainCommand,
  },
  {
    name: 'import',
    description: 'Writes a model repository of Triton as manifests of Models and Ensembles.',
    load: async () => (await import('./import/import-command.ts')).importCommand,
  },
  {
    name: 'doctor',
    description: 'Tells what this machine lacks for tutti serve, and how to mend it.',
    load: async () => (await import('./doctor/doctor-command.ts')).doctorCommand,
  },
  {
    name: 'step',
    description: 'Serves models as a microservice, to routers over NATS and to clients.',
    load: async () => toBody((await import('@tutti/step')).stepExecutable),
  },
  {
    name: 'router',
    description: 'Serves ensembles over the steps of a NATS server.',
    load: async () => (await import('./router/router-command.ts')).routerCommand,
  },
  {
    name: 'fetch',
    description: 'Fetches a model from where it is stored, or checks its digest.',
    load: async () => {
      const { FETCH_FLAGS, FETCH_USAGE, FetchResult, runFetch } = await import('@tutti/step')
      const { cloudIdentity } = await import('@tutti/cloud-identity')
      return {
        usage: FETCH_USAGE,
        flags: FETCH_FLAGS,
        result: FetchResult,
        run: (argv, environment) => runFetch('tutti fetch', argv, environment, cloudIdentity),
      }
    },
  },
  {
    name: 'completion',
    description: 'Prints the script with which a shell completes commands, flags and models.',
    load: async () => {
      const { completionCommand } = await import('./completion/completion-command.ts')
      return completionCommand(() => loadCommands(COMMANDS))
    },
  },
]

/** Makes a command of a program that serves. */
function toBody<T extends FlagTable>(executable: Executable<T>): CommandBody {
  const { usage, flags } = executable
  return {
    usage,
    flags,
    run: async (argv, environment) => {
      const { runExecutable } = await import('@tutti/chassis')
      return await runExecutable(executable, argv, environment)
    },
  }
}
