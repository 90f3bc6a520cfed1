import { z } from 'zod'

/** A line of our own log. */
const LogLine = z.object({
  level: z.string(),
  message: z.string(),
  error: z.string().optional().catch(undefined),
})

/**
 * Finds in the end of a container's log why the container ended. Gives the lines that are not in our log's format, else our lines
 * of level error, else the whole text. Pure.
 *
 * @param text - the end of the log as Kubernetes keeps it: 2 KiB or 80 lines, so the first line may be cut.
 */
export function causeInLog(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const parsed = lines.map((line) => ({ line, log: parseLine(line) }))
  const plain = parsed.filter(({ line, log }, i) => log === undefined && !(i === 0 && isCut(line)))
  if (plain.length > 0) return plain.map(({ line }) => line).join('\n')
  const errors = parsed.flatMap(({ log }) => (log?.level === 'error' ? [toText(log)] : []))
  return errors.length > 0 ? errors.join('\n') : text
}

function parseLine(line: string): z.infer<typeof LogLine> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    return LogLine.safeParse(JSON.parse(line)).data
  } catch {
    // Not ours.
    return undefined
  }
}

function isCut(line: string): boolean {
  return /"message":"[^"]*"\}$/.test(line)
}

function toText({ message, error }: z.infer<typeof LogLine>): string {
  return error === undefined ? message : `${message}: ${error}`
}
