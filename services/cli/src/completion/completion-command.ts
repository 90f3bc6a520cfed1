import type { FlagTable } from '@tutti/chassis'
import { withFlags } from '@tutti/command-line/command'
import type { Command, CommandBody } from '@tutti/command-line/program'
import { ServeError } from '@tutti/errors'
import { renderBash } from './bash-script.ts'
import { describeCompletions } from './completions.ts'
import { renderFish } from './fish-script.ts'
import { printModels } from './list-models.ts'
import { renderZsh } from './zsh-script.ts'

const SCRIPTS = { bash: renderBash, zsh: renderZsh, fish: renderFish }
const SHELLS = Object.keys(SCRIPTS)
/** The word that the scripts call, with the words of `tutti infer` that stand before the cursor. */
const MODELS = 'models'

const COMPLETION_FLAGS = {} as const satisfies FlagTable

/** Makes the command `completion`. @param commands - loads all commands of `tutti`, this one too. */
export function completionCommand(commands: () => Promise<readonly Command[]>): CommandBody {
  return withFlags(
    { usage: 'tutti completion bash|zsh|fish', flags: COMPLETION_FLAGS, operands: [SHELLS] },
    async ({ positionals }, environment) => {
      const [shell, ...words] = positionals
      if (shell === MODELS) return await printModels(words, environment)
      const render = new Map(Object.entries(SCRIPTS)).get(shell ?? '')
      if (render === undefined || words.length > 0) {
        const got = positionals.length === 0 ? 'nothing' : `'${positionals.join(' ')}'`
        throw new ServeError('FLAG_INVALID', `got ${got}, want one of ${SHELLS.join(', ')}`)
      }
      environment.out(render(describeCompletions(await commands())))
      return 0
    },
  )
}
