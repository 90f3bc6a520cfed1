import { runExecutable } from '@tutti/chassis'
import { routerExecutable } from '@tutti/router'
import { runFetch, stepExecutable } from '@tutti/step'
import type { Command } from './command.ts'

export const stepCommand: Command = {
  name: 'step',
  description: 'Serves models as a microservice, to routers over NATS and to clients.',
  run: (argv, around) => runExecutable(stepExecutable, argv, around),
}

export const routerCommand: Command = {
  name: 'router',
  description: 'Serves ensembles over the steps of a NATS server.',
  run: (argv, around) => runExecutable(routerExecutable, argv, around),
}

export const fetchCommand: Command = {
  name: 'fetch',
  description: 'Fetches a model from where it is stored, or checks its digest.',
  run: (argv, around) => runFetch('tutti fetch', argv, around),
}
