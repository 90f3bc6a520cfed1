/** Where the plain client answers. */
export const ECHO_SUBJECT = 'bench.echo'
