/** The exit code that a shell gives for a program that SIGPIPE (13) ended. */
const BROKEN_PIPE = 128 + 13
const FAILED = 1

/**
 * Ends the process when its standard output cannot be written. `| head` ends a command as it ends any program, as if by SIGPIPE,
 * which Node ignores; of other errors, such as a full disk, the user is told.
 *
 * @param program - its name, for the user.
 */
export function endUnwritable(program: string, { code, message }: NodeJS.ErrnoException): void {
  if (code === 'EPIPE') process.exit(BROKEN_PIPE)
  process.stderr.write(`${program}: standard output cannot be written: ${message}\n`)
  process.exit(FAILED)
}
