import { type FlagSpec, withDashes } from '@tutti/chassis'
import type { Choices, Command } from '@tutti/command-line/program'

/** A flag as a shell completes it. */
export interface CompletedFlag {
  /** Name of the flag with its dashes. */
  readonly name: string
  /** Sentence about the flag, without its full stop. */
  readonly description: string
  /** Choices of the value; no words if there is nothing to offer. */
  readonly choices: Choices
  /** True if the flag may stand without a value. */
  readonly isSwitch: boolean
  readonly isRepeatable: boolean
}

/** A command as a shell completes it. */
export interface CompletedCommand {
  readonly name: string
  readonly description: string
  readonly flags: readonly CompletedFlag[]
  readonly operands: readonly Choices[]
}

/** Lists the commands with their flags and operands for completion, without flags that have no effect. */
export function describeCompletions(commands: readonly Command[]): readonly CompletedCommand[] {
  return commands.map(({ name, description, flags, operands = [] }) => ({
    name,
    description: firstSentence(description),
    operands,
    flags: [
      ...Object.entries(flags)
        .filter(([, spec]) => spec.isIgnored !== true)
        .flatMap(([flag, spec]) =>
          [flag, ...(spec.aliases ?? [])].map(withDashes).map(complete(spec)),
        ),
      ...['--help', '-h'].map(complete({ type: 'bool', description: 'Print the flags.' })),
    ],
  }))
}

function complete(spec: FlagSpec): (name: string) => CompletedFlag {
  return (name) => ({
    name,
    description: firstSentence(spec.description),
    choices: choicesOf(spec),
    isSwitch: spec.type === 'bool',
    isRepeatable: spec.type === 'string' && spec.repeatable === true,
  })
}

function choicesOf(spec: FlagSpec): Choices {
  if (spec.type === 'enum') return spec.values
  if (spec.type === 'bool') return ['true', 'false']
  return spec.type === 'string' ? (spec.path ?? []) : Object.keys(spec.words ?? {})
}

function firstSentence(text: string): string {
  return text.replace(/\.(\s+[A-Z].*)?$/s, '')
}
