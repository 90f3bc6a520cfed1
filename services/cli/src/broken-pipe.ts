/** What a shell says of a program that SIGPIPE (13) ended. */
const BROKEN_PIPE = 128 + 13

/** `| head` ends a command as it ends any program, as if by SIGPIPE, which Node ignores. */
export function endQuietly(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit(BROKEN_PIPE)
}
