# Verifies with OpenSSL what C signed by each scheme: verify.sh FOLDER
set -eu
key=../../tests/keys/rsa2048-pkcs8.pem
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf message > "$dir/message"
openssl pkey -in "$key" -pubout -out "$dir/public"
verify() {
  "$1/capi-sign" "$key" message "$dir/signature" "$2"
  shift 2
  openssl dgst "$@" -verify "$dir/public" -signature "$dir/signature" "$dir/message"
}
bits=256
for number in 1 2 3; do
  verify "$1" $number -sha$bits
  verify "$1" $((number + 4)) -sha$bits -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest
  bits=$((bits + 128))
done
