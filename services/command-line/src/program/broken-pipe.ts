/** The exit code that a shell gives for a program that SIGPIPE (13) ended. */
const BROKEN_PIPE = 128 + 13
const FAILED = 1

/**
 * Ends the process when its standard output cannot be written. After a closed pipe, as by `| head`, the exit code is that of
 * SIGPIPE, which Node ignores. Other errors, such as a full disk, are written to standard error, and the exit code is 1.
 *
 * @param program - name of the program, for the message.
 */
export function endUnwritable(program: string, { code, message }: NodeJS.ErrnoException): void {
  if (code === 'EPIPE') process.exit(BROKEN_PIPE)
  process.stderr.write(`${program}: standard output cannot be written: ${message}\n`)
  process.exit(FAILED)
}
